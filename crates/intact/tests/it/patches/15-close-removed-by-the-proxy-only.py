# No: 11 of 11 avoidable connections are still opened
from service import *


def forward(connection):
    stream = connection.makefile("rwb")
    while stream.readline():
        while stream.readline() not in (b"\r\n", b""):
            pass
        upstream = client()
        send(upstream, "/", headers={"Connection": "close"})
        stream.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
        stream.flush()
        connection.close()
        break


port = server(forward)
for number in range(REQUESTS):
    send(client(port), f"/{number}")
# --- head
from service import *


def forward(connection):
    stream = connection.makefile("rwb")
    while stream.readline():
        while stream.readline() not in (b"\r\n", b""):
            pass
        upstream = client()
        send(upstream, "/")
        upstream.close()
        stream.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
        stream.flush()
        connection.close()
        break


port = server(forward)
for number in range(REQUESTS):
    send(client(port), f"/{number}")
