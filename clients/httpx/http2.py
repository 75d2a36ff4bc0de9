# snippet
import httpx  # with the package h2

client = httpx.Client(http2=True)  # one for the whole program
# end


PACKAGES = ["httpx", "httpcore", "h2"]


def request(method, url, body):
    return client.request(method, url, content=body).status_code


def unread(url):
    response = client.send(client.build_request("GET", url), stream=True)
    return response.status_code
