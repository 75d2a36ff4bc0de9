"""The code that both commits of a patch have: clients of the service at HOST PORT."""

import http.client
import socket
import sys
import threading
import time

HOST, PORT = sys.argv[1], int(sys.argv[2])
REQUESTS = 12
FAILURES = (OSError, http.client.HTTPException)


def client(port=PORT):
    return http.client.HTTPConnection(HOST, port, timeout=10)


def send(connection, path="/", method="GET", **more):
    body = b"order" if method == "POST" else None
    connection.request(method, path, body=body, **more)
    response = connection.getresponse()
    response.read()
    return response.status


def server(handle):
    """A server in this process, on any free port: `handle` gets each connection."""
    listener = socket.create_server(("127.0.0.1", 0))

    def accept():
        while True:
            handle(listener.accept()[0])

    threading.Thread(target=accept, daemon=True).start()
    return listener.getsockname()[1]


def answer(connection):
    """Answers the requests of a connection until its client closes it."""
    stream = connection.makefile("rwb")
    while stream.readline():
        while stream.readline() not in (b"\r\n", b""):
            pass
        stream.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        stream.flush()
