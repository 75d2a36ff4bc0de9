"""The rows of an access log: clients of nginx, as in rows.py. A response of `/0.1` takes 0.1 s."""

import sys
import time

from peer import *

RULE, FIRES = sys.argv[1], sys.argv[2] == "fires"


def get(c, path="/now"):
    c.request("GET", path)
    return c.getresponse().read()


def one_by_one(count, path="/now"):
    for _ in range(count):
        c = new()
        get(c, path)
        c.close()


def over_tls(context, session=None):
    c = new_tls(context, session, 8443)
    get(c)
    return c


def new_connection_per_request():
    if FIRES:
        # requests of one step of the log's clock may have overlapped
        return one_by_one(5, "/0.02")
    c = new()
    for _ in range(5):
        get(c)


def waiting_for_pool():
    wait_for_pool(FIRES, "/{}".format, get)


def ports_running_out():
    run_out_of_ports(FIRES, one_by_one)


def tls_never_resumed():
    resume_never(FIRES, over_tls)


def old_tls():
    of_version(FIRES, over_tls)


def slower_when_reused():
    slow_later(FIRES, "/{:.3f}".format, get)


def first_request_costs_more():
    def get_later(c, path):
        # requests of neighbouring steps of the log's clock seem to overlap
        time.sleep(0.005)
        get(c, path)

    in_rounds(12, ["/0.05", "/0"] if FIRES else ["/0", "/0.05"], get_later)


globals()[RULE.replace("-", "_")]()
