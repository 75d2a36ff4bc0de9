# snippet
import httpx

client = httpx.Client(transport=httpx.HTTPTransport(retries=1))  # repeats failed connects only
# end


PACKAGES = ["httpx", "httpcore"]


def request(method, url, body):
    return client.request(method, url, content=body).status_code
