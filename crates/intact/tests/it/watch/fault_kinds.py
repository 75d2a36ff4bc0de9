"""Clients of the tests of faults: what each prints is what the program saw of its own connections."""

import errno
import http.client
import socket
import ssl
import struct
import sys
import time

what, scheme, port = sys.argv[1], sys.argv[2], int(sys.argv[3])


def connect():
    if scheme == "https":
        tls = ssl._create_unverified_context()
        return http.client.HTTPSConnection("127.0.0.1", port, context=tls)
    return http.client.HTTPConnection("127.0.0.1", port)


def ask(kept, number, headers={}):
    kept.request("POST", f"/{number}", body=b"x" * 40, headers=headers)
    response = kept.getresponse()
    body = response.read()
    return f"{response.status} {len(body)}"


def requests(count, gap, headers={}):
    """One after the other on one connection; a request that fails is not sent again."""
    kept = None
    for number in range(count):
        if number:
            time.sleep(gap)
        kept = kept or connect()
        try:
            print(ask(kept, number, headers))
        except (OSError, http.client.HTTPException):
            print("failed")
            kept.close()
            kept = None


def kernel(option):
    """What the program's kernel does on a connection that hears nothing."""
    kept = connect()
    print(ask(kept, 0))
    if option == "keepalive":
        kept.sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in (("TCP_KEEPIDLE", 1), ("TCP_KEEPINTVL", 1), ("TCP_KEEPCNT", 1)):
            kept.sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    else:
        kept.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 1500)
        kept.sock.sendall(b"GET /1 HTTP/1.1\r\nHost: a\r\n\r\n")
        sent_again, deadline = 0, time.monotonic() + 20
        while not sent_again and time.monotonic() < deadline:
            time.sleep(0.01)
            info = kept.sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104)
            sent_again = struct.unpack_from("I", info, 100)[0]
        print("sent again", sent_again > 0)
    try:
        print("came", kept.sock.recv(100))
    except OSError as error:
        print(errno.errorcode[error.errno])
    kept.close()
    print(ask(connect(), 2))
    # a silent connection that is closed right before the end of its program looks like one that the program kept
    time.sleep(1)


def at_once():
    """Many connections, each with three requests."""
    kept = [connect() for _ in range(25)]
    for turn in range(3):
        for number, one in enumerate(kept):
            try:
                ask(one, number)
            except (OSError, http.client.HTTPException):
                one.close()
        time.sleep(0.4)


def http2(gap, keeps=False):
    """GET on streams 1, 3, 5, again on a new connection when the server ends the old one; GOAWAY is printed."""

    def frame(kind, flags, stream, payload=b""):
        return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload

    def read(sock, count):
        data = b""
        while len(data) < count:
            more = sock.recv(count - len(data))
            if not more:
                raise EOFError
            data += more
        return data

    def request(sock, stream):
        block = b"\x82\x84\x86\x41\x01a"
        sock.sendall(frame(1, 5, stream, block))
        while True:
            head = read(sock, 9)
            length, kind, flags = int.from_bytes(head[:3], "big"), head[3], head[4]
            of, payload = int.from_bytes(head[5:], "big"), read(sock, length)
            if kind == 4 and not flags:
                sock.sendall(frame(4, 1, 0))
            elif kind == 7:
                print("GOAWAY", int.from_bytes(payload[:4], "big"))
            elif of == stream and kind in (0, 1) and flags & 1:
                return

    if keeps:
        sock = socket.create_connection(("127.0.0.1", port))
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0))
        request(sock, 1)
        time.sleep(gap)
        sock.sendall(frame(1, 5, 3, b"\x82\x84\x86\x41\x01a"))
        # the kernel sends this one again and again, and nothing behind it
        while struct.unpack_from("I", sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104), 100)[0] < 3:
            time.sleep(0.01)
        sock.sendall(frame(1, 5, 5, b"\x82\x84\x86\x41\x01a"))
        try:
            print("came", sock.recv(100))
        except OSError as error:
            print(errno.errorcode[error.errno])
        return
    sock, stream = None, 1
    for number in range(3):
        if number:
            time.sleep(gap)
        for _ in range(2):
            try:
                if sock is None:
                    sock, stream = socket.create_connection(("127.0.0.1", port)), 1
                    if scheme == "https":
                        tls = ssl._create_unverified_context()
                        tls.set_alpn_protocols(["h2"])
                        sock = tls.wrap_socket(sock)
                    sock.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0))
                request(sock, stream)
                print("answered")
                stream += 2
                break
            except (OSError, EOFError):
                print("failed")
                sock = None


def burst(gap, first=b"/"):
    """Requests of HTTP/2: one, then three in flight together, those again that got no response."""

    def frame(kind, flags, stream, payload=b""):
        return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload

    def connect():
        sock = socket.create_connection(("127.0.0.1", port))
        if scheme == "https":
            tls = ssl._create_unverified_context()
            tls.set_alpn_protocols(["h2"])
            sock = tls.wrap_socket(sock)
        sock.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0))
        return sock

    def responses(sock, streams):
        """The streams of these that get a response until the connection ends."""
        done, data = [], b""
        while len(done) < len(streams):
            more = sock.recv(65536)
            data += more
            while len(data) >= 9 and len(data) >= 9 + int.from_bytes(data[:3], "big"):
                length, kind, flags = int.from_bytes(data[:3], "big"), data[3], data[4]
                stream, payload, data = int.from_bytes(data[5:9], "big"), data[9 : 9 + length], data[9 + length :]
                if kind == 4 and not flags:
                    sock.sendall(frame(4, 1, 0))
                elif kind == 7:
                    print("GOAWAY", int.from_bytes(payload[:4], "big"))
                elif stream in streams and kind in (0, 1) and flags & 1:
                    done.append(stream)
            if not more:
                break
        return sorted(done)

    def send(sock, streams, path=b"/"):
        for stream in streams:
            block = b"\x82\x86\x41\x01a\x04" + bytes([len(path)]) + path
            sock.sendall(frame(1, 5, stream, block))
            path = b"/"
        print(responses(sock, streams))

    sock = connect()
    send(sock, [1])
    time.sleep(gap)
    send(sock, [3, 5, 7], first)
    send(connect(), [1, 3])


if what == "slow":
    requests(3, 0.5)
elif what == "fast":
    requests(5, 0)
elif what == "once":
    requests(1, 0)
elif what == "closes":
    requests(3, 0.2, {"Connection": "close"})
elif what == "unused":
    for number in range(3):
        kept = connect()
        print(ask(kept, number))
        kept.close()
elif what == "nothing":
    pass
elif what == "at-once":
    at_once()
elif what == "http2":
    http2(0.5)
elif what == "burst":
    burst(0.3, b"/delay/200")
elif what == "slow-burst":
    burst(0.3, b"/delay/3000")
elif what == "keeps":
    http2(0.5, keeps=True)
else:
    kernel(what)
