"""What `connect_tcp` of anyio is made of: it opens in a task of its own, and waits for an event."""
import asyncio


class Scope:
    def __init__(self):
        self.deadline = float("inf")
        self._tasks = set()
        self._host_task = asyncio.current_task()


class Group:
    def __init__(self):
        self.cancel_scope = Scope()
        self._exceptions = []


async def connect_tcp(host, port, delay=None):
    connected = None

    async def try_connect(host, event):
        nonlocal connected
        if delay:
            await asyncio.sleep(delay)
        connected = await asyncio.open_connection(host, port)
        group.cancel_scope.deadline = 0
        event.set()

    group = Group()
    event = asyncio.Event()
    asyncio.ensure_future(try_connect(host, event))
    await event.wait()
    return connected
