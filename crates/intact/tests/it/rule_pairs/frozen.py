"""A function that asks on a kept connection once an invocation, and reports an error where that fails: frozen.py PORT."""

import http.client
import sys

import runtime

kept = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]))


def ask(event, id):
    try:
        kept.request("POST", "/", body=b"order")
        kept.getresponse().read()
    except (OSError, http.client.HTTPException):
        kept.close()
        return {"errorType": "ECONNRESET", "errorMessage": "socket hang up"}


runtime.run(ask)
