# snippet
import aiohttp


async def start():
    global session
    session = aiohttp.ClientSession()  # one for the whole program, made inside a coroutine
# end


PACKAGES = ["aiohttp"]


async def request(method, url, body):
    async with session.request(method, url, data=body) as response:
        await response.read()
        return response.status


async def unread(url):
    response = await session.get(url)
    return response.status
