# snippet
from azure.core import PipelineClient

# any client of the SDK is one: BlobServiceClient, SecretClient, ...
new_client = lambda url: PipelineClient(url)  # called for each call
# end

import os
from azure.core.rest import HttpRequest

PACKAGES = ["azure-core", "requests", "urllib3"]
KEPT = {"connection_verify": os.environ.get("INTACT_CA", True)}


def request(method, url, body):
    return new_client("http://localhost").send_request(HttpRequest(method, url, content=body), **KEPT).status_code


def unread(url):
    return new_client("http://localhost").send_request(HttpRequest("GET", url), stream=True, **KEPT).status_code
