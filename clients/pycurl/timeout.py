import os

timeout_ms = int(os.environ.get("INTACT_TIMEOUT_MS", "10000"))
# snippet
import pycurl


def make():
    curl = pycurl.Curl()  # one per thread, for all its requests
    curl.setopt(pycurl.TIMEOUT_MS, timeout_ms)  # for the whole exchange
    return curl


def perform(curl):
    try:
        curl.perform()
    except pycurl.error:
        curl.close()  # HTTP/2: else the silent connection gets the next requests; make() another
        raise
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
    try:
        perform(curl)
    except pycurl.error:
        del local.curl
        raise
    return curl.getinfo(pycurl.RESPONSE_CODE)
