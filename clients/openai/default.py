# snippet
import openai

client = openai.OpenAI(api_key="...")  # one for the whole program
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
        return ask(url, lambda: client.post(url, cast_to=httpx2.Response, body={}).status_code)
    return ask(url, lambda: client.get(url, cast_to=httpx2.Response).status_code)


def unread(url):
    stream = client.get(url, cast_to=object, stream=True, stream_cls=openai.Stream[object])
    return stream.response.status_code
