# snippet
import json
import openai

client = openai.OpenAI(api_key="...")  # one for the whole program


def read(response):
    for line in response.iter_lines():  # to its end, beyond "[DONE]"
        if line.startswith("data: {"):
            yield json.loads(line.removeprefix("data: "))


# per request:
# with client.chat.completions.with_streaming_response.create(..., stream=True) as response:
#     for event in read(response):
# end

import events
from openai._response import StreamedBinaryAPIResponse

PACKAGES = ["openai", "httpx2"]
EVENTS = b'data: {"choices": []}\n\ndata: [DONE]\n\n'
RAW = {"headers": {"X-Stainless-Raw-Response": "stream"}}
client._client.event_hooks["response"] = [lambda answer: events.speak(answer, EVENTS)]


def request(method, url, body):
    send, more = (client.post, {"body": {}}) if method == "POST" else (client.get, {})
    try:
        response = send(url, cast_to=object, options=RAW, stream=True, stream_cls=openai.Stream[object], **more)
    except openai.APIStatusError as error:
        return error.status_code
    assert list(read(response))
    response.close()
    return response.status_code
