# snippet
import pycurl


def get(url):
    curl = pycurl.Curl()  # per request
    curl.setopt(pycurl.URL, url)
    curl.perform()
    curl.close()
# end
import os


VERSIONS = {"libcurl": pycurl.version_info()[1]}
PACKAGES = ["pycurl"]


def request(method, url, body):
    curl = pycurl.Curl()
    status = perform(curl, method, url, body)
    curl.close()
    return status


def perform(curl, method, url, body):
    curl.setopt(pycurl.URL, url)
    curl.setopt(pycurl.WRITEFUNCTION, lambda _: None)
    curl.setopt(pycurl.CAINFO, os.environ.get("INTACT_CA", "/etc/ssl/certs/ca-certificates.crt"))
    if body:
        curl.setopt(pycurl.POSTFIELDS, body)
    else:
        curl.setopt(pycurl.HTTPGET, 1)
    curl.perform()
    return curl.getinfo(pycurl.RESPONSE_CODE)
