"""Opens connections in tasks of a library: `# CASE=N` at the end of the line that waits for them."""
import asyncio
import sys

sys.path.insert(0, sys.path[0] + "/site-packages")
from anyio._core._sockets import connect_tcp

PORT = int(sys.argv[1])


async def speak(stream):
    reader, writer = stream
    writer.write(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    await reader.read()
    writer.close()


async def charge():
    await speak(await connect_tcp("127.0.0.1", PORT))  # awaited=3 gathered=4


async def refund():
    await speak(
        await connect_tcp(  # gathered=4
            "127.0.0.1",
            PORT,
        )
    )


async def items():
    for _ in range(2):
        stream = await connect_tcp("127.0.0.1", PORT)  # items=2
        await speak(stream)
        yield stream


async def awaited():
    for _ in range(3):
        await charge()


async def gathered():
    await asyncio.gather(*[one() for _ in range(4) for one in (charge, refund)])


async def iterated():
    async for _ in items():
        pass


async def library():
    # the task runs the library's own function: who made it is not known
    for stream in await asyncio.gather(*[connect_tcp("127.0.0.1", PORT) for _ in range(3)]):
        await speak(stream)


async def left():
    # nothing waits for the task of the library any more
    waiting = asyncio.ensure_future(connect_tcp("127.0.0.1", PORT, 0.05))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.sleep(0.3)


CASES = {
    "awaited": awaited,
    "gathered": gathered,
    "items": iterated,
    "library": library,
    "left": left,
}
asyncio.run(CASES[sys.argv[2]]())
