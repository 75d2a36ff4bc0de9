# snippet
import urllib.request

# per request: urllib.request.urlopen(url).read()
# end
import urllib.error


def request(method, url, body):
    try:
        with urllib.request.urlopen(urllib.request.Request(url, data=body, method=method)) as response:
            response.read()
            return response.status
    except urllib.error.HTTPError as error:
        error.read()
        return error.code
