# snippet
from elasticsearch import Elasticsearch

client = None  # Elasticsearch("https://localhost:9200"), one for the whole program
# end

import os
from urllib.parse import urlsplit

PACKAGES = ["elasticsearch", "elastic-transport", "urllib3"]


def request(method, url, body):
    global client
    parts = urlsplit(url)
    if client is None:
        secure = {"ca_certs": os.environ.get("INTACT_CA")} if parts.scheme == "https" else {}
        client = Elasticsearch(f"{parts.scheme}://{parts.netloc}", **secure)
    headers = {"content-type": "application/json"} if body else None
    meta, _ = client.transport.perform_request(method, parts.path, headers=headers, body=body and {})
    return meta.status
