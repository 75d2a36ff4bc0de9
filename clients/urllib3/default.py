# snippet
import urllib3


def send(method, url, body=None):
    return urllib3.request(method, url, body=body).status  # a pool for the whole program
# end


PACKAGES = ["urllib3"]
request = send


def unread(url):
    return urllib3.request("GET", url, preload_content=False).status
