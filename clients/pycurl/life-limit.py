import os

life_seconds = int(os.environ.get("INTACT_LIFE_MS", "4000")) // 1000
# snippet
import pycurl


def make():
    curl = pycurl.Curl()  # one per thread, for all its requests
    curl.setopt(pycurl.MAXLIFETIME_CONN, life_seconds)
    return curl
# end
import threading


VERSIONS = {"libcurl": pycurl.version_info()[1]}
PACKAGES = ["pycurl"]

local = threading.local()


def request(method, url, body):
    if not hasattr(local, "curl"):
        local.curl = make()
    curl = local.curl
    curl.setopt(pycurl.URL, url)
    curl.setopt(pycurl.WRITEFUNCTION, lambda _: None)
    curl.setopt(pycurl.CAINFO, os.environ.get("INTACT_CA", "/etc/ssl/certs/ca-certificates.crt"))
    if body:
        curl.setopt(pycurl.POSTFIELDS, body)
    else:
        curl.setopt(pycurl.HTTPGET, 1)
    curl.perform()
    return curl.getinfo(pycurl.RESPONSE_CODE)
