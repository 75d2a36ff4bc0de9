"""Runs one client program for the harness: python driver.py PROGRAM. The protocol is in clients/README.md."""

import asyncio
import importlib.util
import inspect
import json
import platform
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version

spec = importlib.util.spec_from_file_location("program", sys.argv[1])
program = importlib.util.module_from_spec(spec)
spec.loader.exec_module(program)

IS_ASYNC = inspect.iscoroutinefunction(getattr(program, "request", None))
versions = {"python": platform.python_version()}
for name in getattr(program, "PACKAGES", []):
    versions[name] = version(name)
versions.update(getattr(program, "VERSIONS", {}))

can = [] if getattr(program, "NO_PAUSE", False) else ["pause"]
if not getattr(program, "ONE_AT_A_TIME", False):
    can.append("concurrent")
if not getattr(program, "GET_ONLY", False):
    can.append("post")
if getattr(program, "POST_ONLY", False):
    can.append("post-only")
if getattr(program, "HTTP2_ONLY", False):
    can.append("http2-only")
if not getattr(program, "OWN_SERVICE", False):
    can.append("status")
if hasattr(program, "unread"):
    can.append("unread")


def failure(error):
    return type(error).__name__


def once(method, url, read):
    try:
        if read:
            return program.request(method, url, b"ping" if method == "POST" else None)
        return program.unread(url)
    except Exception as error:
        return failure(error)


async def once_async(method, url, read):
    try:
        if read:
            return await program.request(method, url, b"ping" if method == "POST" else None)
        return await program.unread(url)
    except Exception as error:
        return failure(error)


def say(what):
    print(json.dumps(what), flush=True)


def parse(line):
    count, order, method, body, url = line.split()
    return int(count), order == "at-once", method, body == "read", url


def main():
    # threads as a program would have them: they live on from step to step
    threads = ThreadPoolExecutor(10)
    say({"versions": versions, "can": can})
    for line in sys.stdin:
        count, at_once, method, read, url = parse(line)
        if hasattr(program, "batch"):
            say(program.batch(count, at_once, method, url))
        elif at_once:
            say(list(threads.map(lambda _: once(method, url, read), range(count))))
        else:
            say([once(method, url, read) for _ in range(count)])


async def main_async():
    loop = asyncio.get_running_loop()
    if hasattr(program, "start"):
        await program.start()
    say({"versions": versions, "can": can})
    # in a thread, so that the loop goes on and sees what happens to idle connections
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        count, at_once, method, read, url = parse(line)
        if at_once:
            say(await asyncio.gather(*(once_async(method, url, read) for _ in range(count))))
        else:
            say([await once_async(method, url, read) for _ in range(count)])


if IS_ASYNC:
    asyncio.run(main_async())
else:
    main()
# what is left open is the harness's to see, not the interpreter's to tidy up
os._exit(0)
