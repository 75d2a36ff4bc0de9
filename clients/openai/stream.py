# snippet
import openai

client = openai.OpenAI(api_key="...")  # one for the whole program

# per request: for event in client.chat.completions.create(..., stream=True):
# the client closes the stream, and with it the connection, at "[DONE]": before the body's end
# end

import events

PACKAGES = ["openai", "httpx2"]
EVENTS = b'data: {"choices": []}\n\ndata: [DONE]\n\n'
client._client.event_hooks["response"] = [lambda answer: events.speak(answer, EVENTS)]


def open_stream(method, url):
    send, more = (client.post, {"body": {}}) if method == "POST" else (client.get, {})
    return send(url, cast_to=object, stream=True, stream_cls=openai.Stream[object], **more)


def request(method, url, body):
    try:
        stream = open_stream(method, url)
    except openai.APIStatusError as error:
        return error.status_code
    for _ in stream:
        pass
    return stream.response.status_code


def unread(url):
    return open_stream("GET", url).response.status_code
