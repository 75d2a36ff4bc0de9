# Yes: connections 12 → 1
# request: pi-hole/FTL#2357, Use keep-alive
from service import *

KEEPS = False


def handle(connection):
    stream = connection.makefile("rwb")
    while stream.readline():
        while stream.readline() not in (b"\r\n", b""):
            pass
        field = b"" if KEEPS else b"Connection: close\r\n"
        stream.write(b"HTTP/1.1 200 OK\r\n" + field + b"Content-Length: 2\r\n\r\nok")
        stream.flush()
        if not KEEPS:
            connection.close()
            break


api = client(server(handle))
for number in range(REQUESTS):
    send(api, f"/api/{number}")
# --- head
from service import *

KEEPS = True


def handle(connection):
    stream = connection.makefile("rwb")
    while stream.readline():
        while stream.readline() not in (b"\r\n", b""):
            pass
        field = b"" if KEEPS else b"Connection: close\r\n"
        stream.write(b"HTTP/1.1 200 OK\r\n" + field + b"Content-Length: 2\r\n\r\nok")
        stream.flush()
        if not KEEPS:
            connection.close()
            break


api = client(server(handle))
for number in range(REQUESTS):
    send(api, f"/api/{number}")
