"""A function under Lambda's Runtime API: `run` with what it does at an invocation."""

import http.client
import json
import os


def run(handle):
    """Responds to each event with the event, or with the error that `handle(event, id)` returns."""
    api = http.client.HTTPConnection(os.environ["AWS_LAMBDA_RUNTIME_API"])
    root = "/2018-06-01/runtime/invocation/"
    while True:
        api.request("GET", root + "next")
        answer = api.getresponse()
        event, id = answer.read(), answer.headers["Lambda-Runtime-Aws-Request-Id"]
        error = handle(event, id)
        outcome = "error" if error else "response"
        api.request("POST", f"{root}{id}/{outcome}", json.dumps(error) if error else event)
        api.getresponse().read()


