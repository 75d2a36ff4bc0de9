# snippet
import requests

session = requests.Session()  # one for the whole program
# end

PACKAGES = ["requests", "urllib3"]


def request(method, url, body):
    return session.request(method, url, data=body).status_code


def unread(url):
    return session.get(url, stream=True).status_code
