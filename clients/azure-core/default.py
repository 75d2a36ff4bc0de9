# snippet
from azure.core import PipelineClient

# any client of the SDK is one: BlobServiceClient, SecretClient, ...
new_client = lambda url: PipelineClient(url)  # called once, for all calls
# end

import os
from azure.core.rest import HttpRequest

PACKAGES = ["azure-core", "requests", "urllib3"]
client = new_client("http://localhost")
KEPT = {"connection_verify": os.environ.get("INTACT_CA", True)}


def request(method, url, body):
    return client.send_request(HttpRequest(method, url, content=body), **KEPT).status_code


def unread(url):
    return client.send_request(HttpRequest("GET", url), stream=True, **KEPT).status_code
