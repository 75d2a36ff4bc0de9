# snippet
import aiohttp

# per request, in the handler:
# async with aiohttp.ClientSession() as session:
#     async with session.get(url) as response:
#         await response.read()
# end

PACKAGES = ["aiohttp"]


async def request(method, url, body):
    async with aiohttp.ClientSession() as session:
        async with session.request(method, url, data=body) as response:
            await response.read()
            return response.status
