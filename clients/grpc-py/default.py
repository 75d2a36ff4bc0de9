# snippet
import grpc

new_channel = grpc.insecure_channel  # called once, for all calls; else grpc.secure_channel
# end

import os
from urllib.parse import urlsplit

PACKAGES = ["grpcio"]
HTTP2_ONLY = True
channels = {}


def open_to(parts):
    if parts.scheme == "http":
        return new_channel(parts.netloc)
    with open(os.environ["INTACT_CA"], "rb") as file:
        return grpc.secure_channel(parts.netloc, grpc.ssl_channel_credentials(file.read()))


def ask(channel, path):
    try:
        channel.unary_unary(path)(b"")
    except grpc.RpcError as error:
        # the test server has no such method, and says so
        if error.code() != grpc.StatusCode.UNIMPLEMENTED:
            raise
    return 200


def request(method, url, body):
    parts = urlsplit(url)
    origin = parts.scheme + parts.netloc
    if origin not in channels:
        channels[origin] = open_to(parts)
    return ask(channels[origin], parts.path)
