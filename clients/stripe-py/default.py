# snippet
import stripe

client = stripe.StripeClient("sk_test_...")  # one for the whole program
# end

import os
from urllib.parse import urlsplit

PACKAGES = ["stripe", "requests", "urllib3"]
stripe.ca_bundle_path = os.environ.get("INTACT_CA", stripe.ca_bundle_path)


def request(method, url, body):
    global client
    parts = urlsplit(url)
    origin = f"{parts.scheme}://{parts.netloc}"
    if client._requestor.base_addresses.get("api") != origin:
        client = stripe.StripeClient("sk_test_...", base_addresses={"api": origin})
    try:
        client.raw_request(method.lower(), parts.path)
    except stripe.APIError as error:
        # the test server answers, but does not speak JSON
        if error.http_status is None:
            raise
        return error.http_status
    except stripe.InvalidRequestError as error:
        return error.http_status
    return 200
