# snippet
import httpx

# per request: httpx.get(url)
# end


PACKAGES = ["httpx", "httpcore"]


def request(method, url, body):
    return httpx.request(method, url, content=body).status_code
