# snippet
import httpx

client = httpx.AsyncClient()  # one for the whole program
# end


PACKAGES = ["httpx", "httpcore"]


async def request(method, url, body):
    return (await client.request(method, url, content=body)).status_code


async def unread(url):
    response = await client.send(client.build_request("GET", url), stream=True)
    return response.status_code
