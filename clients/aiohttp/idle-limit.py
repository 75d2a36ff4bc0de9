import os

idle_seconds = int(os.environ.get("INTACT_IDLE_MS", "4000")) / 1000
# snippet
import aiohttp


def make():
    connector = aiohttp.TCPConnector(keepalive_timeout=idle_seconds)
    return aiohttp.ClientSession(connector=connector)
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
