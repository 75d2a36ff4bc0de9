# snippet
from elasticsearch import Elasticsearch

# in the handler, for each call: client = Elasticsearch("https://localhost:9200")
# end

import os
from urllib.parse import urlsplit

PACKAGES = ["elasticsearch", "elastic-transport", "urllib3"]


def request(method, url, body):
    parts = urlsplit(url)
    secure = {"ca_certs": os.environ.get("INTACT_CA")} if parts.scheme == "https" else {}
    client = Elasticsearch(f"{parts.scheme}://{parts.netloc}", **secure)
    headers = {"content-type": "application/json"} if body else None
    meta, _ = client.transport.perform_request(method, parts.path, headers=headers, body=body and {})
    return meta.status
