"""A session of MCP with the test server, whose answers are made those of such a server."""

import asyncio
import itertools
import json
from urllib.parse import urlsplit

import events
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCRequest

PACKAGES = ["mcp", "httpx2"]
numbers = itertools.count(1)


async def to_its_url(request):
    """Each message names the URL that the harness wants; a session has one."""
    request.url = request.url.copy_with(**json.loads(request.content)["params"])


def answered(streamed):
    async def hook(response):
        number = json.loads(response.request.content)["id"]
        answer = json.dumps({"jsonrpc": "2.0", "id": number, "result": {}}).encode()
        if streamed:
            events.speak(response, b"event: message\ndata: " + answer + b"\n\n")
        else:
            events.speak(response, answer, "application/json")

    return hook


class Session:
    def __init__(self, streamed=False):
        self.streamed = streamed
        self.waiting = {}
        self.write = asyncio.get_running_loop().create_future()
        self.task = asyncio.create_task(self.run())

    async def run(self):
        client = create_mcp_http_client()
        client.event_hooks = {"request": [to_its_url], "response": [answered(self.streamed)]}
        failure = ConnectionError("the session ended")
        try:
            async with client, streamable_http_client("http://localhost/mcp", http_client=client) as (read, write):
                self.write.set_result(write)
                async for message in read:
                    self.waiting.pop(message.message.id).set_result(message.message)
        except BaseExceptionGroup as errors:
            failure = errors.exceptions[0]
        finally:
            for waiting in self.waiting.values():
                waiting.set_exception(failure)

    async def ask(self, url):
        number = next(numbers)
        parts = urlsplit(url)
        where = {"scheme": parts.scheme, "host": parts.hostname, "port": parts.port, "path": parts.path}
        self.waiting[number] = asyncio.get_running_loop().create_future()
        message = JSONRPCRequest(jsonrpc="2.0", id=number, method="ping", params=where)
        await (await self.write).send(SessionMessage(message))
        return await self.waiting[number]

    async def end(self):
        await (await self.write).aclose()
        self.task.cancel()
