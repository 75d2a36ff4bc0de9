# snippet
import anthropic

# in the handler, for each call
new_client = lambda: anthropic.Anthropic(api_key="...")
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
        return ask(lambda: new_client().post(url, cast_to=httpx2.Response, body={}).status_code)
    return ask(lambda: new_client().get(url, cast_to=httpx2.Response).status_code)


def unread(url):
    stream = new_client().get(url, cast_to=object, stream=True, stream_cls=anthropic.Stream[object])
    return stream.response.status_code
