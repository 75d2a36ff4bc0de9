"""The two sides of a row: a server in a thread, and requests to it.

Each row has an address of its own for its server and for its client, so that a run of all rows has a destination, and in a
capture a client, for each.
"""

import contextlib
import http.client
import os
import socket
import ssl
import threading
import time

SERVER, CLIENT, FOLDER = (os.environ[name] for name in ("SERVER", "CLIENT", "FOLDER"))
PORT = int(os.environ.get("PORT", "8080"))


def response(fields="", body=b"ok"):
    return f"HTTP/1.1 200 OK\r\n{fields}Content-Length: {len(body)}\r\n\r\n".encode() + body


def serve(answer, wrap=lambda s: s, host=SERVER):
    """Calls `answer(s, request, nth)` for each request of a connection; a false result ends the connection."""
    server = socket.create_server((host, PORT), backlog=1024)

    def connection(s):
        nth = 0
        with contextlib.suppress(OSError), wrap(s) as s:
            while request := s.recv(65536):
                nth += 1
                if not answer(s, request, nth):
                    break

    def accept():
        while True:
            threading.Thread(target=connection, args=[server.accept()[0]], daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()


def keep(s, request, _nth):
    """Responds, and keeps the connection."""
    s.sendall(response() if not request.startswith(b"HEAD") else response(body=b""))
    return True


def slow(seconds, is_slow=lambda nth: True):
    """Responds late to the requests of a connection for which this holds."""

    def answer(s, request, nth):
        time.sleep(seconds if is_slow(nth) else 0)
        return keep(s, request, nth)

    return answer


def as_asked(s, request, nth):
    """Responds after the seconds in the path."""
    time.sleep(float(request.split()[1][1:]))
    return keep(s, request, nth)


def new(timeout=None, host=SERVER):
    return http.client.HTTPConnection(host, PORT, timeout=timeout, source_address=(CLIENT, 0))


def ask(c, method="GET", **fields):
    """One request, and its response to the end."""
    c.request(method, "/", headers={name.replace("_", "-"): value for name, value in fields.items()})
    return c.getresponse().read()


def in_turn(count, close=True):
    """Requests on a connection each."""
    kept = []
    for _ in range(count):
        kept.append(new())
        ask(kept[-1])
        if close:
            kept[-1].close()
    return kept


def on_one(count, c=None):
    """Requests on one connection."""
    c = c or new()
    for _ in range(count):
        ask(c)
    return c


def at_once(count, work):
    """Runs `work(nth)` in threads that begin together."""
    start = threading.Barrier(count)

    def one(nth):
        start.wait()
        work(nth)

    threads = [threading.Thread(target=one, args=[nth]) for nth in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def wait_for_end(c):
    """Until the server has closed a connection that is idle."""
    c.sock.recv(1, socket.MSG_PEEK)


def tls_server(answer, delay=0.0):
    """Takes TLS connections, and begins each handshake late."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(f"{FOLDER}/cert.pem", f"{FOLDER}/key.pem")
    context.set_alpn_protocols(["http/1.1"])

    def wrap(s):
        time.sleep(delay)
        return context.wrap_socket(s, server_side=True)

    serve(answer, wrap)


def trust(version=ssl.TLSVersion.TLSv1_3):
    context = ssl.create_default_context(cafile=f"{FOLDER}/cert.pem")
    context.check_hostname = False
    context.minimum_version = context.maximum_version = version
    return context


def new_tls(context, session=None, port=PORT):
    """A connection over TLS that may resume a session."""
    c = new()
    c.sock = socket.create_connection((SERVER, port), source_address=(CLIENT, 0))
    c.sock = context.wrap_socket(c.sock, server_hostname=f"{os.environ['NAME']}.example", session=session)
    return c


def wait_for_pool(fires, path, get):
    """Five workers that share a list, of which one has a long request; or one that has all of them."""
    paths = [path(0.9)] + [path(0.15), path(0.19), path(0.23), path(0.27)] * 4
    lock = threading.Lock()

    def work(_):
        c = new()
        while True:
            with lock:
                next = paths.pop(0) if paths else None
            if next is None:
                return
            get(c, next)

    if fires:
        at_once(5, work)
    else:
        del paths[5:]
        at_once(1, work)


def run_out_of_ports(fires, open_in_turn):
    """As many new connections as take half of the ports; or one."""
    begin = time.monotonic()
    if fires:
        open_in_turn(int(os.environ["OPENINGS"]))
    time.sleep(max(0.0, begin + 1.2 - time.monotonic()))
    open_in_turn(1)


def resume_never(fires, over_tls):
    """Five full handshakes; or four that resume the session before."""
    context, session = trust(), None
    for _ in range(5):
        c = over_tls(context, None if fires else session)
        session = c.sock.session
        c.close()


def of_version(fires, over_tls):
    over_tls(trust(ssl.TLSVersion.TLSv1_2 if fires else ssl.TLSVersion.TLSv1_3))


def slow_later(fires, path, get):
    """Paths of 0 and 45 ms, three of each, so that they are alike: those of 45 ms come later, or first."""
    for nth in range(6):
        short, long = path(nth % 3 / 1000), path(0.045 + nth % 3 / 1000)
        in_rounds(1, [short, long, long] if fires else [long, short, short], get)


def in_rounds(count, paths, get):
    """These paths in turn, on a connection for each round."""
    for _ in range(count):
        c = new()
        for path in paths:
            get(c, path)
