# snippet
import requests

# per request: requests.get(url)
# end

PACKAGES = ["requests", "urllib3"]


def request(method, url, body):
    return requests.request(method, url, data=body).status_code
