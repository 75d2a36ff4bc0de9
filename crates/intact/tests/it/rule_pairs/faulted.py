"""A client of one kept connection, for `watch --fault`: faulted.py BEHAVIOUR PORT."""

import http.client
import sys
import time

behaviour, port = sys.argv[1], int(sys.argv[2])
METHOD = "POST" if behaviour == "repeats-post" else "GET"
kept = []


def connect():
    return http.client.HTTPConnection("127.0.0.1", port, timeout=None if behaviour == "hangs" else 0.5)


def ask(c, number):
    c.request(METHOD, f"/{number}", body=b"x" * 40 if METHOD == "POST" else None)
    try:
        c.getresponse().read()
    except http.client.IncompleteRead:
        if behaviour != "takes-part":
            raise


c = connect()
for number in range(4):
    try:
        ask(c, number)
    except (OSError, http.client.HTTPException):
        if behaviour == "leaks":
            kept.append(c)
        else:
            c.close()
        c = connect()
        if behaviour not in ("fails", "hangs"):
            ask(c, number)
    time.sleep(0.3)
    if behaviour == "leaks" and not kept:
        kept.append(c)
        c = connect()
