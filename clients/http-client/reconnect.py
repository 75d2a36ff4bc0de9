# snippet
import http.client


def send(connection, method, path, body=None):
    """connection = http.client.HTTPSConnection(host): one, kept by the caller"""
    try:
        connection.request(method, path, body)
        response = connection.getresponse()
    except (ConnectionError, http.client.HTTPException):
        connection.close()  # the next request opens it again
        if method != "GET":
            raise
        connection.request(method, path, body)
        response = connection.getresponse()
    response.read()
    return response.status
# end
import threading
from urllib.parse import urlsplit

# a connection can do one request at a time, so each thread has its own
local = threading.local()


def connection_to(url):
    parts = urlsplit(url)
    known = local.__dict__.setdefault("known", {})
    key = (parts.scheme, parts.netloc)
    if key not in known:
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        known[key] = kind(parts.netloc)
    return known[key], parts.path


def request(method, url, body):
    connection, path = connection_to(url)
    return send(connection, method, path, body)


def unread(url):
    connection, path = connection_to(url)
    connection.request("GET", path)
    return connection.getresponse().status
