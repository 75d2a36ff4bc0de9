# snippet
from google.cloud import storage

new_client = lambda **more: storage.Client(**more)  # called for each call
# end

import os
from google.api_core.exceptions import GoogleAPICallError
from google.auth.credentials import AnonymousCredentials

PACKAGES = ["google-cloud-storage", "requests", "urllib3"]


def ask(client, method, url, body):
    if method == "POST":
        return client._connection._make_request(method, url, data=body).status_code
    blob = client.bucket("b").blob("o")
    blob._properties["mediaLink"] = url
    try:
        blob.download_as_bytes(checksum=None)
    except GoogleAPICallError as error:
        return error.code
    return 200


def request(method, url, body):
    return ask(new_client(project="x", credentials=AnonymousCredentials()), method, url, body)
