# snippet
import requests
from requests.adapters import HTTPAdapter
from urllib3.util.retry import Retry

session = requests.Session()
adapter = HTTPAdapter(max_retries=Retry(total=1, status=0))  # GET, HEAD, PUT, DELETE, OPTIONS, TRACE
session.mount("https://", adapter)
session.mount("http://", adapter)
# end

PACKAGES = ["requests", "urllib3"]


def request(method, url, body):
    return session.request(method, url, data=body).status_code
