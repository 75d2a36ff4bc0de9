import os

timeout_seconds = int(os.environ.get("INTACT_TIMEOUT_MS", "10000")) / 1000
# snippet
import anthropic

# between two reads; the default is 600 s, with two more tries
client = anthropic.Anthropic(api_key="...", timeout=timeout_seconds, max_retries=0)
# end

import httpx2

PACKAGES = ["anthropic", "httpx2"]


def ask(send):
    try:
        return send()
    except anthropic.APIStatusError as error:
        return error.status_code


def request(method, url, body):
    if method == "POST":
        return ask(lambda: client.post(url, cast_to=httpx2.Response, body={}).status_code)
    return ask(lambda: client.get(url, cast_to=httpx2.Response).status_code)


def unread(url):
    stream = client.get(url, cast_to=object, stream=True, stream_cls=anthropic.Stream[object])
    return stream.response.status_code
