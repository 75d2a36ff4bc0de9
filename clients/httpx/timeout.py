import os

timeout_seconds = int(os.environ.get("INTACT_TIMEOUT_MS", "10000")) / 1000
# snippet
import httpx

client = httpx.Client(timeout=timeout_seconds)  # to connect, to write, between two reads, for the pool
# end


PACKAGES = ["httpx", "httpcore"]


def request(method, url, body):
    return client.request(method, url, content=body).status_code


def unread(url):
    response = client.send(client.build_request("GET", url), stream=True)
    return response.status_code
