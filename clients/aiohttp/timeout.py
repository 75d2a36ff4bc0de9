import os

timeout_seconds = int(os.environ.get("INTACT_TIMEOUT_MS", "10000")) / 1000
# snippet
import aiohttp


async def start():
    global session
    timeout = aiohttp.ClientTimeout(sock_connect=3, sock_read=timeout_seconds)  # between two reads
    session = aiohttp.ClientSession(timeout=timeout)  # one for the whole program, made inside a coroutine
# end


PACKAGES = ["aiohttp"]


async def request(method, url, body):
    async with session.request(method, url, data=body) as response:
        await response.read()
        return response.status


async def unread(url):
    response = await session.get(url)
    return response.status
