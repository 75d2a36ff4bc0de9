"""Traffic of every kind, one connection after another. The first target of each names it."""
import http.client
import socket
import ssl
import struct
import sys
import time

plain, tls, ca = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]


def dial():
    one = socket.create_connection(("127.0.0.1", plain))
    one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return one


def head(target, method="GET", more=""):
    host = f"Host: 127.0.0.1:{plain}\r\nUser-Agent: rows/1.0 (x)\r\n"
    return f"{method} {target} HTTP/1.1\r\n{host}{more}\r\n".encode()


def read_response(one):
    response = http.client.HTTPResponse(one)
    response.begin()
    return response.read()


def get(one, target):
    one.sendall(head(target))
    return read_response(one)


def post(one, target, body, pieces=1):
    one.sendall(head(target, "POST", f"Content-Length: {len(body)}\r\n"))
    step = len(body) // pieces
    for at in range(0, len(body), step):
        if pieces > 1:
            time.sleep(0.06)
        one.sendall(body[at : at + step])
    return read_response(one)


def leave(one):
    # clearly after the limit of "right after the response", so that every observer calls the connection idle
    time.sleep(0.5)
    one.close()


def reset(one):
    one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    one.close()


# two requests, the second after a while
one = dial()
get(one, "/keep?secret=1")
time.sleep(0.3)
get(one, "/bytes/20000")
leave(one)

# bodies above 16 KiB: two are equal, one differs in its last byte
one = dial()
get(one, "/bodies")
body = b"x" * 40_000
for each in (body, body, body[:-1] + b"y"):
    post(one, "/echo", each)
leave(one)

# a slow request body
one = dial()
post(one, "/echo/slow", b"z" * 1000, pieces=5)
leave(one)

# HTTP/1.0: the end of the connection ends the response
one = dial()
one.sendall(b"GET /old HTTP/1.0\r\n\r\n")
read_response(one)
one.close()

# hangs up before the response, and within a slow body once all that came was read
one = dial()
one.sendall(head("/fault/stall"))
time.sleep(0.3)
one.close()
one = dial()
get(one, "/hang-up")
one.sendall(head("/fault/trickle"))
started = time.monotonic()
while time.monotonic() < started + 0.3:
    one.recv(4096)
one.close()

# resets before the response, and within a slow body
one = dial()
one.sendall(head("/delay/5000"))
time.sleep(0.3)
reset(one)
one = dial()
get(one, "/reset-by-client")
one.sendall(head("/fault/trickle"))
# right after a byte, because the next one comes 50 ms later: every observer has seen the same
seen = b""
while len(seen.partition(b"\r\n\r\n")[2]) < 5:
    seen += one.recv(4096)
reset(one)

# the server resets, and the server closes
for target in ("/fault/reset-mid-body", "/fault/truncated-body", "/fault/close-before-answer"):
    one = dial()
    one.sendall(head(target))
    try:
        while one.recv(4096):
            pass
    except ConnectionResetError:
        pass
    one.close()

# opened ahead, and never used
one = dial()
time.sleep(0.5)
get(one, "/preconnected")
get(one, "/reused")
leave(one)
one = dial()
time.sleep(0.1)
one.close()

# the server ends it while it is idle; the second client notices only when it sends
one = dial()
get(one, "/idle")
assert one.recv(1) == b""
one.close()
one = dial()
get(one, "/stale")
time.sleep(2)
one.sendall(head("/too-late"))
try:
    while one.recv(4096):
        pass
except ConnectionResetError:
    pass
one.close()

# the server reads a request on a kept connection, and closes at once
one = dial()
get(one, "/executed")
one.sendall(head("/fault/close-before-answer"))
while one.recv(4096):
    pass
one.close()

# HTTP/2 in the clear: two streams together, one later, one that the client resets
def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def block(method, path):
    authority = f"127.0.0.1:{plain}".encode()
    return method + b"\x86\x04" + bytes([len(path)]) + path + b"\x01" + bytes([len(authority)]) + authority


def headers(stream, path):
    return frame(1, 5, stream, block(b"\x82", path))


def read_streams(one, wanted):
    buffer = b""
    while wanted:
        while len(buffer) < 9 or len(buffer) < 9 + int.from_bytes(buffer[:3], "big"):
            more = one.recv(65536)
            assert more
            buffer += more
        length, kind, flags = int.from_bytes(buffer[:3], "big"), buffer[3], buffer[4]
        stream = int.from_bytes(buffer[5:9], "big")
        buffer = buffer[9 + length :]
        if kind in (0, 1) and flags & 1:
            wanted.discard(stream)
        if kind == 4 and not flags & 1:
            one.sendall(frame(4, 1, 0))


one = dial()
one.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0) + headers(1, b"/h2/1") + headers(3, b"/h2/3"))
read_streams(one, {1, 3})
one.sendall(headers(5, b"/h2/5"))
read_streams(one, {5})
one.sendall(headers(7, b"/delay/4000"))
time.sleep(0.3)
one.sendall(frame(3, 0, 7, struct.pack(">I", 8)))
time.sleep(0.1)
one.sendall(frame(7, 0, 0, struct.pack(">II", 0, 0)))
one.close()

# gRPC: a method that the server has, and one that it does not have
def call(stream, path):
    kind = b"application/grpc"
    fields = b"\x0f\x10" + bytes([len(kind)]) + kind
    return frame(1, 5, stream, block(b"\x83", path) + fields)


one = dial()
one.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0) + call(1, b"/grpc.health.v1.Health/Check"))
read_streams(one, {1})
one.sendall(call(3, b"/intact.Test/None"))
read_streams(one, {3})
one.sendall(frame(7, 0, 0, struct.pack(">II", 0, 0)))
one.close()

# TLS 1.2 and 1.3 with logged secrets; the client closes in good order
for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
    context = ssl.create_default_context(cafile=ca)
    context.maximum_version = version
    one = context.wrap_socket(socket.create_connection(("127.0.0.1", tls)), server_hostname="localhost")
    for target in (f"/tls/{version.name}", "/bytes/30000"):
        one.sendall(f"GET {target} HTTP/1.1\r\nHost: localhost:{tls}\r\n\r\n".encode())
        read_response(one)
    time.sleep(0.5)
    one.unwrap().close()
