# snippet
import anthropic

client = anthropic.Anthropic(api_key="...")  # one for the whole program

# per request: with client.messages.stream(...) as stream:
# end

import events

PACKAGES = ["anthropic", "httpx2"]
EVENTS = b'event: message_stop\ndata: {"type": "message_stop"}\n\n'
client._client.event_hooks["response"] = [lambda answer: events.speak(answer, EVENTS)]


def open_stream(method, url):
    send, more = (client.post, {"body": {}}) if method == "POST" else (client.get, {})
    return send(url, cast_to=object, stream=True, stream_cls=anthropic.Stream[object], **more)


def request(method, url, body):
    try:
        stream = open_stream(method, url)
    except anthropic.APIStatusError as error:
        return error.status_code
    for _ in stream:
        pass
    return stream.response.status_code


def unread(url):
    return open_stream("GET", url).response.status_code
