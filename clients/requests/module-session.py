# snippet
import requests

session = requests.session()  # at module level, as articles for serverless functions have it
# end

PACKAGES = ["requests", "urllib3"]


def request(method, url, body):
    return session.request(method, url, data=body).status_code
