"""Servers that `check` probes: servers.py KIND; prints `ready`, and ends with its standard input."""

import itertools
import os
import signal
import socket
import sys
import threading
import time

from peer import PORT, SERVER, as_asked, keep, response, serve, slow

KIND = sys.argv[1]


def closed_after_method(s, request, nth):
    if request.startswith(b"HEAD"):
        s.sendall(response(body=b""))
        return False
    return keep(s, request, nth)


names = {}


def connection_affinity(s, *_):
    name = names.setdefault(s, len(names))
    s.sendall(response(f"X-Backend: {name}\r\n"))
    return True


def idle_connection_blocks():
    """A single thread, which the first connection keeps."""
    server = socket.create_server((SERVER, PORT))
    while True:
        answer_all(server.accept()[0])


def with_idle_limit(limit_of):
    """Ends connections after an idle time, which `limit_of(connection, nth)` gives."""
    open_ones = set()

    def connection(s):
        open_ones.add(s)
        limit, nth = limit_of(len(open_ones), 0), 0
        s.settimeout(limit)
        try:
            while request := s.recv(65536):
                nth += 1
                keep(s, request, nth)
                s.settimeout(limit_of(len(open_ones), nth))
        except OSError:
            pass
        open_ones.discard(s)
        s.close()

    server = socket.create_server((SERVER, PORT), backlog=128)
    while True:
        threading.Thread(target=connection, args=[server.accept()[0]], daemon=True).start()


def stopped_accepting():
    """Accepts eight connections, and serves these to their end."""
    server = socket.create_server((SERVER, PORT))
    for _ in range(8):
        s = server.accept()[0]
        threading.Thread(target=answer_all, args=[s], daemon=True).start()
    server.close()


def answer_all(s):
    try:
        while request := s.recv(65536):
            keep(s, request, 1)
    except OSError:
        pass
    s.close()


def failed_requests():
    """Ends the connection of every fifth request, from the tenth on."""
    count = itertools.count(1)

    def answer(s, request, nth):
        number = next(count)
        return (number < 10 or number % 5 > 0) and keep(s, request, nth)

    serve(answer)


def never_recovers():
    """Responds fast to 110 requests, and then late for good."""
    count = itertools.count()

    def answer(s, request, nth):
        time.sleep(1 if next(count) > 110 else 0)
        return keep(s, request, nth)

    serve(answer)


def graceful():
    """Announces the end from the signal on, listens for 1.5 s more, and responds to what is in flight."""
    ending = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ending.set())

    def answer(s, request, nth):
        if b"/delay" in request:
            time.sleep(0.5)
        s.sendall(response("Connection: close\r\n" if ending.is_set() else ""))
        return not ending.is_set()

    serve(answer)
    ending.wait()
    time.sleep(1.5)
    os._exit(0)


def as_process_that_dies():
    """Has no handler of the signal."""
    serve(slow(0.5, lambda nth: True))
    time.sleep(600)


RUN = {
    "keeps": lambda: serve(keep),
    "bytes-after-response": lambda: serve(lambda s, *_: s.sendall(response() + b"more") or True),
    "closed-after-method": lambda: serve(closed_after_method),
    "connection-affinity": lambda: serve(connection_affinity),
    "slower-when-reused": lambda: serve(slow(0.08, lambda nth: 1 < nth < 4)),
    "idle-connection-blocks": idle_connection_blocks,
    "idle-timeout-shrinks": lambda: with_idle_limit(lambda others, nth: 0.2 if others > 10 else 1.6),
    "shorter-before-first-request": lambda: with_idle_limit(lambda others, nth: 1.8 if nth else 0.3),
    "as-asked": lambda: serve(as_asked),
    "failed-requests": failed_requests,
    "reuse-saves-little": lambda: serve(slow(0.3, lambda nth: nth < 4)),
    "slow-at-first": lambda: serve(slow(0.2, lambda nth: nth == 1)),
    "did-not-recover": never_recovers,
    "slow-on-reuse": lambda: serve(slow(0.045, lambda nth: nth > 1)),
    "stopped-accepting": stopped_accepting,
}

if KIND in RUN:
    threading.Thread(target=RUN[KIND], daemon=True).start()
    while True:
        try:
            socket.create_connection((SERVER, PORT)).close()
            break
        except OSError:
            time.sleep(0.01)
    print("ready", flush=True)
    sys.stdin.read()
else:
    {"graceful": graceful, "drain-not-handled": as_process_that_dies}[KIND]()
