"""Sends requests over a kept connection: faults.py HOST COUNT METHOD [retry] [keep-going] [swallow] [leak] [fresh] [equal] [idle=S] [timeout=S].

Targets are /0, /1, ...; with `equal`, all after /0 are /1. A request that fails is sent again where `retry` is given."""

import http.client
import sys
import time

host, count, method, words = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4:]
values = dict(word.split("=") for word in words if "=" in word)
timeout = float(values["timeout"]) if "timeout" in values else None
leaked = []


def connect():
    return http.client.HTTPConnection(host, timeout=timeout)


def once(connection, target):
    connection.request(method, target, body=b"order" if method == "POST" else None)
    response = connection.getresponse()
    try:
        response.read()
    except http.client.IncompleteRead as error:
        if "swallow" not in words:
            raise
        connection.close()
        return error.partial


connection = connect()
for nth in range(count):
    if "idle" in values and nth:
        time.sleep(float(values["idle"]))
    if "leak" in words and nth:
        leaked.append(connection)
        connection = connect()
    if "fresh" in words:
        connection.close()
    target = f"/{min(nth, 1) if 'equal' in words else nth}"
    try:
        once(connection, target)
    except (OSError, http.client.HTTPException):
        connection.close()
        if "retry" in words:
            once(connection, target)
        elif "keep-going" not in words:
            sys.exit(1)
