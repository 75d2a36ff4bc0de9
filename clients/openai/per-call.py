# snippet
import openai

# in the handler, for each call
new_client = lambda: openai.OpenAI(api_key="...")
# end

import httpx2

PACKAGES = ["openai", "httpx2"]


def ask(url, send):
    try:
        return send()
    except openai.APIStatusError as error:
        return error.status_code


def request(method, url, body):
    if method == "POST":
        return ask(url, lambda: new_client().post(url, cast_to=httpx2.Response, body={}).status_code)
    return ask(url, lambda: new_client().get(url, cast_to=httpx2.Response).status_code)


def unread(url):
    stream = new_client().get(url, cast_to=object, stream=True, stream_cls=openai.Stream[object])
    return stream.response.status_code
