# snippet
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client


async def serve(url, calls):
    async with streamable_http_client(url) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        await calls(session)  # all calls of the program, in one session
# end
POST_ONLY = True
from session import PACKAGES, Session

STREAMED = False
session = None


async def request(method, url, body):
    global session
    if session is None or session.task.done():
        session = Session(STREAMED)
    await session.ask(url)
    return 200
