import os

timeout_seconds = int(os.environ.get("INTACT_TIMEOUT_MS", "10000")) / 1000
# snippet
import http.client


def connect(host, kind=http.client.HTTPSConnection):
    # between two reads; to connect, too
    return kind(host, timeout=timeout_seconds)


def send(connection, method, path, body=None):
    """connection = http.client.HTTPSConnection(host): one, kept by the caller"""
    connection.request(method, path, body)
    response = connection.getresponse()
    response.read()  # to its end, or the connection cannot be used again
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
        known[key] = connect(parts.netloc, kind)
    return known[key], parts.path


def request(method, url, body):
    connection, path = connection_to(url)
    return send(connection, method, path, body)


def unread(url):
    connection, path = connection_to(url)
    connection.request("GET", path)
    return connection.getresponse().status
