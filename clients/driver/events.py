"""Answers of the test server as a service streams them: its events, then the end of the body."""

import httpx2


class Events(httpx2.SyncByteStream, httpx2.AsyncByteStream):
    """Events in place of a body, which ends, or is closed, when that body is."""

    def __init__(self, body, events):
        self.body = body
        self.events = events

    def __iter__(self):
        parts = iter(self.body)
        next(parts, None)
        yield self.events
        yield from (b": more\n\n" for _ in parts)

    async def __aiter__(self):
        parts = aiter(self.body)
        await anext(parts, None)
        yield self.events
        async for _ in parts:
            yield b": more\n\n"

    def close(self):
        self.body.close()

    async def aclose(self):
        await self.body.aclose()


def speak(response, events, kind="text/event-stream"):
    """A hook of httpx2: a success has these events in place of its body."""
    if response.status_code == 200:
        response.headers["content-type"] = kind
        response.stream = Events(response.stream, events)
