# snippet
import aiohttp


def make():
    return aiohttp.ClientSession(connector=aiohttp.TCPConnector(force_close=True))
# end


async def start():
    global session
    session = make()


PACKAGES = ["aiohttp"]


async def request(method, url, body):
    async with session.request(method, url, data=body) as response:
        await response.read()
        return response.status


async def unread(url):
    response = await session.get(url)
    return response.status
