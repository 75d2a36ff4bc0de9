import os

timeout_seconds = int(os.environ.get("INTACT_TIMEOUT_MS", "10000")) / 1000
# snippet
import requests

session = requests.Session()  # one for the whole program


def send(method, url, body):
    # to connect, and between two reads of the response
    return session.request(method, url, data=body, timeout=(3, timeout_seconds))
# end


PACKAGES = ["requests", "urllib3"]


def request(method, url, body):
    return send(method, url, body).status_code


def unread(url):
    return session.get(url, stream=True, timeout=timeout_seconds).status_code
