# snippet
import requests
from requests.adapters import HTTPAdapter

session = requests.Session()
adapter = HTTPAdapter(pool_maxsize=20)  # at least as many as threads
session.mount("https://", adapter)
session.mount("http://", adapter)
# end

PACKAGES = ["requests", "urllib3"]


def request(method, url, body):
    return session.request(method, url, data=body).status_code
