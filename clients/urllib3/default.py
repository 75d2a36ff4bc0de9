# snippet
import urllib3

# per request: urllib3.request("GET", url)
# end


PACKAGES = ["urllib3"]


def request(method, url, body):
    return urllib3.request(method, url, body=body).status


def unread(url):
    return urllib3.request("GET", url, preload_content=False).status
