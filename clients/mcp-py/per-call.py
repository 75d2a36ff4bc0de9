# snippet
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client


async def call(url, name, arguments):  # a session for each call
    async with streamable_http_client(url) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        return await session.call_tool(name, arguments)
# end

POST_ONLY = True
from session import PACKAGES, Session


async def request(method, url, body):
    session = Session()
    await session.ask(url)
    await session.end()
    return 200
