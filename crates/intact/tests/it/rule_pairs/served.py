"""The rows of the ledger of a server: clients of `intact serve`, as in rows.py. The server on port 8081 announces an idle limit of 1 s,
and the one on port 8082 ends connections after three requests."""

import contextlib
import http.client
import os
import subprocess
import sys
import threading
import time

from peer import *

RULE, FIRES = sys.argv[1], sys.argv[2] == "fires"
FAILED = (OSError, http.client.HTTPException)


def get(c, path="/", **fields):
    c.request("GET", path, headers={name.replace("_", "-"): value for name, value in fields.items()})
    return c.getresponse().read()


def at(port):
    return http.client.HTTPConnection(SERVER, port, source_address=(CLIENT, 0))


def delay(seconds):
    return f"/delay/{round(seconds * 1000)}"


def closed_before_response():
    c = new()
    with contextlib.suppress(*FAILED):
        get(c, "/fault/close-before-answer" if FIRES else "/")


def broken_response():
    c = new()
    for _ in range(3):
        with contextlib.suppress(*FAILED):
            get(c, "/fault/truncated-body" if FIRES else "/")
        if FIRES:
            c.close()


def abandoned_request():
    c = new(timeout=0.1 if FIRES else None)
    for _ in range(3):
        with contextlib.suppress(TimeoutError):
            get(c, "/fault/stall" if FIRES else delay(0.3))
        if FIRES:
            c.close()


def body_not_drained():
    for _ in range(4):
        c = new()
        c.request("GET", "/bytes/3000000")
        answer = c.getresponse()
        answer.read(10 if FIRES else None)
        c.close()


def connection_close_sent():
    c = new()
    for _ in range(4):
        get(c, **({"Connection": "close"} if FIRES else {}))
        if FIRES:
            c.close()


def close_announced_not_kept():
    c = new()
    for _ in range(4):
        get(c, "/fault/keep-alive-then-close" if FIRES else "/")
        if FIRES:
            wait_for_end(c)
            c.close()


def server_closes_early():
    c = at(8082) if FIRES else new()
    for _ in range(12):
        get(c)


def pool_too_small():
    kept, most, lock = [], 2 if FIRES else 6, threading.Lock()

    def work(nth):
        c = used[nth]
        get(c, f"/delay/{100 + 30 * nth}")
        with lock:
            if len(kept) < most:
                return kept.append(c)
        c.close()

    for _ in range(3):
        used = [kept.pop() if kept else new() for _ in range(6)]
        at_once(6, work)
        time.sleep(0.1)


def leaked_connections():
    held = in_turn(13, close=not FIRES)
    time.sleep(1.1)
    held += in_turn(1)


def new_client_per_request():
    held, c = [], new()
    for _ in range(5):
        c = new() if FIRES else c
        held.append(c)
        get(c)
        time.sleep(0.05)


def new_connection_per_request():
    if FIRES:
        in_turn(5)
    else:
        on_one(5)


def idle_timeout_race():
    c = at(8081)
    get(c)
    time.sleep(0.85 if FIRES else 0.1)
    get(c)


def waiting_for_pool():
    wait_for_pool(FIRES, delay, get)


def ports_running_out():
    run_out_of_ports(FIRES, in_turn)


def over_tls(context, session=None):
    return on_one(1, new_tls(context, session, 8443))


def tls_never_resumed():
    resume_never(FIRES, over_tls)


def old_tls():
    of_version(FIRES, over_tls)


def slower_when_reused():
    slow_later(FIRES, delay, get)


def first_request_costs_more():
    in_rounds(12, [delay(0.05), delay(0)] if FIRES else [delay(0), delay(0.05)], get)


def of_node():
    folder = os.path.dirname(os.path.abspath(__file__))
    env = dict(os.environ, SERVED="1")
    subprocess.run(["node", f"{folder}/http2.js", RULE, sys.argv[2]], env=env, check=True)


NODE = ["channel-per-call", "h2-not-multiplexed"]
(of_node if RULE in NODE else globals()[RULE.replace("-", "_")])()
