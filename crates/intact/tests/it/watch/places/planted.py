"""Opens connections at known lines: `# CASE=N` at its end says which case opens how many there."""
import asyncio
import concurrent.futures
import functools
import http.client
import os
import socket
import sys
import threading
import urllib.request

PORT = int(sys.argv[1])
URL = f"http://127.0.0.1:{PORT}/"


def call():
    urllib.request.urlopen(URL).read()  # sync=3 thread=8 pool=4 fork=2


def several_lines():
    client = http.client.HTTPConnection("127.0.0.1", PORT)
    client.request(  # lines=3
        "GET",
        "/",
        headers={"x": "y"},
    )
    client.getresponse().read()
    client.close()


def wrapped(function):
    @functools.wraps(function)
    def inner(*values):
        return function(*values)

    return inner


@wrapped
@wrapped
def decorated():
    urllib.request.urlopen(URL).read()  # decorated=3


class First:
    def fetch(self):
        urllib.request.urlopen(URL).read()  # same=2


class Second:
    def fetch(self):
        # the same name, another class
        urllib.request.urlopen(URL).read()  # same=3


class Property:
    @property
    def value(self):
        return urllib.request.urlopen(URL).read()  # property=2


def generator():
    for _ in range(3):
        yield urllib.request.urlopen(URL).read()  # generator=3


def comprehension():
    return [
        len(urllib.request.urlopen(URL).read())  # comprehension=3
        for _ in range(3)
    ]


def deep(count):
    if count:
        return deep(count - 1)
    return urllib.request.urlopen(URL).read()  # deep=2


def in_handler():
    try:
        raise ValueError
    except ValueError:
        urllib.request.urlopen(URL).read()  # handler=2
    finally:
        urllib.request.urlopen(URL).read()  # handler=2


def long_function():
    total = 0
    total += 1
    total += sum(n for n in range(200) if n % 3 and n % 5 and n % 7 and n % 11 and n % 13)
    total = ((total + 1) * 2 - 3) ** 2 % 1001 if total > 5 else total * (total - 1) // 2




    # many lines without code, and one whose columns are wide
    result = (total, urllib.request.urlopen(URL).read(), [x for x in range(100)], {"a": {"b": [1, 2, 3]}})  # long=2
    return result


def shared_socket():
    with socket.socket() as one:
        one.connect(("127.0.0.1", PORT))  # socket=2
        one.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        while one.recv(4096):
            pass


by_lambda = lambda: urllib.request.urlopen(URL).read()  # lambda=3


async def stream():
    reader, writer = await asyncio.open_connection("127.0.0.1", PORT)  # gathered=4 awaited=3
    writer.write(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    await reader.read()
    writer.close()


async def awaited():
    for _ in range(3):
        await asyncio.wait_for(nested(stream), 5)


async def nested(function):
    return await function()


async def gathered():
    await asyncio.gather(*[nested(stream) for _ in range(4)])


async def in_executor():
    loop = asyncio.get_running_loop()
    await asyncio.gather(*[loop.run_in_executor(None, executed) for _ in range(3)])


def executed():
    urllib.request.urlopen(URL).read()  # executor=3


def repeat(function, count):
    for _ in range(count):
        function()


def threads():
    every = [threading.Thread(target=repeat, args=(call, 2)) for _ in range(4)]
    [one.start() for one in every]
    [one.join() for one in every]


def pool():
    with concurrent.futures.ThreadPoolExecutor(2) as workers:
        list(workers.map(lambda _: call(), range(4)))


def unknown():
    # no call of this file is in the threads that open: not known
    with concurrent.futures.ThreadPoolExecutor(2) as workers:
        list(workers.map(urllib.request.urlopen, [URL] * 4))


def fork():
    child = os.fork()
    if child == 0:
        repeat(call, 2)
        os._exit(0)
    os.waitpid(child, 0)


def generated():
    names = {"fetch": urllib.request.urlopen, "URL": URL}
    exec(compile("def made():\n\n    fetch(URL).read()\nmade()\n", "<made>", "exec"), names)  # generated=1


CASES = {
    "sync": lambda: repeat(call, 3),
    "lines": lambda: repeat(several_lines, 3),
    "decorated": lambda: repeat(decorated, 3),
    "same": lambda: (repeat(First().fetch, 2), repeat(Second().fetch, 3)),
    "property": lambda: [Property().value for _ in range(2)],
    "generator": lambda: list(generator()),
    "comprehension": comprehension,
    "deep": lambda: repeat(lambda: deep(40), 2),
    "handler": lambda: repeat(in_handler, 2),
    "long": lambda: repeat(long_function, 2),
    "socket": lambda: repeat(shared_socket, 2),
    "lambda": lambda: repeat(by_lambda, 3),
    "awaited": lambda: asyncio.run(awaited()),
    "gathered": lambda: asyncio.run(gathered()),
    "executor": lambda: asyncio.run(in_executor()),
    "thread": threads,
    "pool": pool,
    "unknown": unknown,
    "fork": fork,
    "generated": generated,
}

if __name__ == "__main__":
    for case in sys.argv[2:]:
        CASES[case]()
