# snippet
import urllib3

http = urllib3.PoolManager(retries=False)
# end


PACKAGES = ["urllib3"]


def request(method, url, body):
    return http.request(method, url, body=body).status


def unread(url):
    return http.request("GET", url, preload_content=False).status
