# snippet
from google import genai

client = genai.Client(api_key="...")  # one for the whole program
# end

from google.genai import errors

PACKAGES = ["google-genai", "httpx2"]


def ask(client, method, url):
    api = client._api_client
    options = {"base_url": url[: url.index("/", 8)], "api_version": url[url.index("/", 8) + 1 :].split("/")[0]}
    path = url[url.index("/", 8) + 1 :].partition("/")[2]
    try:
        api.request(method.lower(), path, {"contents": []} if method == "POST" else {}, options)
    except errors.APIError as error:
        return error.code
    return 200


def request(method, url, body):
    return ask(client, method, url)
