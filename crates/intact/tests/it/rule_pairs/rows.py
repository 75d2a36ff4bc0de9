"""A program for each row: with the word `fires` it shows the rule, with `does-not` the cause is missing.

rows.py RULE fires|does-not
"""

import contextlib
import ctypes
import http.client
import multiprocessing
import os
import socket
import struct
import subprocess
import sys
import threading
import time

from peer import *

RULE, FIRES = sys.argv[1], sys.argv[2] == "fires"
FAILED = (OSError, http.client.HTTPException)
fork = multiprocessing.get_context("fork")


def connection_shared_by_processes():
    serve(slow(0.02))
    warm = new(timeout=2)
    ask(warm)
    together = fork.Barrier(2)

    def work():
        c = warm if FIRES else new()
        for _ in range(5):
            together.wait()
            try:
                ask(c)
            except FAILED:
                c.close()

    workers = [fork.Process(target=work) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


def stale_reuse():
    serve(lambda s, request, nth: keep(s, request, nth) and nth < 2)
    c = on_one(2)
    wait_for_end(c)
    if FIRES:
        with contextlib.suppress(*FAILED):
            ask(c)
    c.close()
    ask(c)


def lost_in_drain():
    def answer(s, request, nth):
        if nth > 1:
            return time.sleep(0.05)
        s.sendall(response("Connection: close\r\n"))
        return FIRES

    serve(answer)
    c = new()
    c.request("POST", "/")
    c.sock.recv(65536)
    s, c = c.sock, new()
    if FIRES:
        s.sendall(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n")
    s.recv(1)
    s.close()
    if not FIRES:
        ask(c)


def closed_before_response():
    def answer(s, request, nth):
        return not (FIRES and b"POST" in request) and keep(s, request, nth)

    serve(answer)
    c = new()
    with contextlib.suppress(*FAILED):
        ask(c, "POST")
    c.close()


def drop_all(s):
    """Lets the kernel drop all packets that come to a socket."""
    none = ctypes.create_string_buffer(struct.pack("HBBI", 6, 0, 0, 0))
    program = struct.pack("HL", 1, ctypes.addressof(none))
    s.setsockopt(socket.SOL_SOCKET, 26, program)  # SO_ATTACH_FILTER


def hold(s):
    """Keeps a socket of the server open until the capture has ended: a FIN would reach the client."""
    if path := os.environ.get("HOLDER"):
        holder = subprocess.Popen(["sleep", "60"], pass_fds=[s.fileno()], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        with open(path, "w") as file:
            file.write(str(holder.pid))


def dead_connection_reused():
    """The kernel of the server drops what comes after three requests, as a NAT that has forgotten the connection; or the server
    takes its time."""
    silent, gone = threading.Event(), threading.Event()

    def answer(s, request, nth):
        if nth > 3:
            gone.wait(0.7)
        keep(s, request, nth)
        if nth == 3:
            time.sleep(0.1)  # until the acknowledgement of the response is there
            if FIRES:
                drop_all(s)
                hold(s)
            silent.set()
        return True

    serve(answer)
    c = on_one(3, new(timeout=1.5 if FIRES else None))
    silent.wait()
    with contextlib.suppress(TimeoutError):
        ask(c)
    c.close()
    gone.set()


def broken_response():
    serve(lambda s, *_: s.sendall(response()[: -1 if FIRES else None]) or not FIRES)
    c = new()
    for _ in range(3):
        with contextlib.suppress(*FAILED):
            ask(c)
        if FIRES:
            c.close()


def abandoned_request():
    serve(slow(0.3))
    c = new(timeout=0.1 if FIRES else None)
    for _ in range(3):
        with contextlib.suppress(TimeoutError):
            ask(c)
        if FIRES:
            c.close()


def body_not_drained():
    serve(lambda s, *_: s.sendall(response(body=b"x" * 200000)) or True)
    for _ in range(4):
        c = new()
        c.request("GET", "/")
        answer = c.getresponse()
        answer.read(10 if FIRES else None)
        c.close()


def connection_close_sent():
    serve(lambda s, request, nth: keep(s, request, nth) and b"Connection: close" not in request)
    c = new()
    for _ in range(4):
        ask(c, **({"Connection": "close"} if FIRES else {}))
        if FIRES:
            c.close()


def close_announced_not_kept():
    serve(lambda s, request, nth: keep(s, request, nth) and not FIRES)
    c = new()
    for _ in range(4):
        ask(c)
        if FIRES:
            wait_for_end(c)
            c.close()


def server_closes_early():
    def answer(s, request, nth):
        is_last = nth == 3 and FIRES
        s.sendall(response("Connection: close\r\n" if is_last else ""))
        return not is_last

    serve(answer)
    on_one(12)


def new_connection_per_query():
    serve(lambda s, *_: s.sendall(b"+PONG\r\n") or True)
    s = None
    for _ in range(5):
        s = s if s and not FIRES else socket.create_connection((SERVER, PORT), source_address=(CLIENT, 0))
        s.sendall(b"*1\r\n$4\r\nPING\r\n")
        s.recv(100)
        if FIRES:
            s.close()


def pool_too_small():
    """Bursts of six on a pool that keeps two, or six."""
    kept, most, lock = [], 2 if FIRES else 6, threading.Lock()

    def work(nth):
        c = used[nth]
        c.request("GET", f"/{0.1 + 0.03 * nth}")
        c.getresponse().read()
        with lock:
            if len(kept) < most:
                return kept.append(c)
        c.close()

    serve(as_asked)
    for _ in range(3):
        used = [kept.pop() if kept else new() for _ in range(6)]
        at_once(6, work)
        time.sleep(0.1)


def leaked_connections():
    serve(keep if FIRES else slow(0))
    held = in_turn(13, close=not FIRES)
    time.sleep(1.1)
    held += in_turn(1)


def new_client_per_request():
    serve(keep)
    held, c = [], new()
    for _ in range(5):
        c = new() if FIRES else c
        held.append(c)
        ask(c)
        time.sleep(0.05)


def pool_per_worker():
    """Workers that keep a connection each; or one after the other."""
    serve(keep)
    done = fork.Event()

    def work(is_ready):
        c = on_one(2)
        if not FIRES:
            c.close()
        is_ready.set()
        done.wait()

    workers = []
    for _ in range(9 if FIRES else 1):
        is_ready = fork.Event()
        workers.append(fork.Process(target=work, args=[is_ready]))
        workers[-1].start()
        is_ready.wait()
        time.sleep(0.05)
    done.set()
    for worker in workers:
        worker.join()


def new_connection_per_request():
    serve(keep)
    if FIRES:
        in_turn(5)
    else:
        on_one(5)


def cold_pool():
    """Six handshakes at the same time after a rest, or requests on connections that have been used."""
    tls_server(slow(0.05), delay=0.05)
    context, all = trust(), [None] * 6
    context.set_alpn_protocols(["h2", "http/1.1"])

    def dial_and_ask(nth):
        session = all[0] and all[0].sock.session
        all[nth] = on_one(2, new_tls(context, session))

    for nth in range(1 if FIRES else 6):
        dial_and_ask(nth)
    time.sleep(1.1)
    at_once(6, dial_and_ask if FIRES else lambda nth: on_one(2, all[nth]))


def retried_request():
    first = threading.Event()

    def answer(s, request, nth):
        if FIRES and not first.is_set():
            first.set()
            return False
        return keep(s, request, nth)

    serve(answer)
    c = new()
    for _ in range(2):
        with contextlib.suppress(*FAILED):
            ask(c, "POST")
        c.close()


def idle_timeout_race():
    seconds = 1 if FIRES else 60
    serve(lambda s, *_: s.sendall(response(f"Keep-Alive: timeout={seconds}\r\n")) or True)
    c = on_one(2)
    time.sleep(0.85)
    ask(c)


def get(c, path):
    c.request("GET", path)
    return c.getresponse().read()


def waiting_for_pool():
    serve(as_asked)
    wait_for_pool(FIRES, "/{}".format, get)


def ports_running_out():
    serve(keep)
    run_out_of_ports(FIRES, in_turn)


def over_tls(context, session=None):
    return on_one(1, new_tls(context, session))


def tls_never_resumed():
    tls_server(keep)
    resume_never(FIRES, over_tls)


def old_tls():
    tls_server(keep)
    of_version(FIRES, over_tls)


def h2_available_unused():
    tls_server(slow(0.1))
    context = trust()
    all = [new_tls(context) for _ in range(5)]
    if FIRES:
        at_once(5, lambda nth: ask(all[nth]))
    else:
        for c in all:
            ask(c)


def slower_when_reused():
    serve(slow(0.045, lambda nth: FIRES == (nth > 1)))
    for _ in range(6):
        on_one(3).close()


def first_request_costs_more():
    serve(slow(0.03, lambda nth: FIRES == (nth == 1)))
    for _ in range(12):
        on_one(2).close()


def state_carried_over():
    serve(keep)
    c = new()
    for user in ["ann", "ann", "bob" if FIRES else "ann"]:
        ask(c, Cookie="sid=1", Authorization=f"Bearer {user}")


def lookup_per_request():
    name = f"{os.environ['NAME']}.example"
    serve(keep)
    for _ in range(8 if FIRES else 1):
        on_one(1 if FIRES else 8, new(host=name)).close()


def unbalanced_by_reuse():
    """120 requests on one connection, or on connections that go to the addresses of the name in turn."""
    name = f"{os.environ['NAME'].replace('row', 'wide')}.example"
    found = socket.getaddrinfo(name, PORT, socket.AF_INET, socket.SOCK_STREAM)
    addresses = sorted(one[4][0] for one in found)
    for address in addresses:
        serve(keep, host=address)
    for nth in range(12):
        if nth == 0 or not FIRES:
            c = new(host=addresses[nth % len(addresses)])
        for _ in range(10):
            ask(c, Host=name)


def of_node():
    folder = os.path.dirname(os.path.abspath(__file__))
    subprocess.run(["node", f"{folder}/http2.js", RULE, sys.argv[2]], check=True)


NODE = ["channel-per-call", "h2-not-multiplexed", "h2-stream-limit", "tcp-keepalive-is-not-reuse"]
(of_node if RULE in NODE else globals()[RULE.replace("-", "_")])()
