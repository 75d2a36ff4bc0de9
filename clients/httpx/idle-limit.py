import os

idle_seconds = int(os.environ.get("INTACT_IDLE_MS", "4000")) / 1000
# snippet
import httpx

client = httpx.Client(limits=httpx.Limits(keepalive_expiry=idle_seconds))
# end


PACKAGES = ["httpx", "httpcore"]


def request(method, url, body):
    return client.request(method, url, content=body).status_code
