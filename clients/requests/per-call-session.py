# snippet
import requests


def call(method, url, body):
    session = requests.Session()  # in the handler
    return session.request(method, url, data=body)
# end


PACKAGES = ["requests", "urllib3"]


def request(method, url, body):
    return call(method, url, body).status_code
