import os

timeout_seconds = int(os.environ.get("INTACT_TIMEOUT_MS", "10000")) / 1000
# snippet
import urllib3

# to connect, and between two reads of the response; a GET is repeated, each time with this limit
http = urllib3.PoolManager(timeout=urllib3.Timeout(connect=3, read=timeout_seconds))
# end


PACKAGES = ["urllib3"]


def request(method, url, body):
    return http.request(method, url, body=body).status


def unread(url):
    return http.request("GET", url, preload_content=False).status
