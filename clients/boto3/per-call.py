# snippet
import boto3
from botocore.config import Config

config = Config()


def new_client(**more):
    return boto3.client("s3", config=config, **more)  # in the handler, for each call
# end
from urllib.parse import urlsplit

import botocore.exceptions


def make(endpoint):
    return new_client(
        endpoint_url=endpoint,
        region_name="us-east-1",
        aws_access_key_id="x",
        aws_secret_access_key="x",
    )


PACKAGES = ["boto3", "botocore"]
GET_ONLY = True
OWN_SERVICE = True


def client_of(parts):
    origin = f"{parts.scheme}://{parts.netloc}"
    return make(origin)


def ask(url):
    parts = urlsplit(url)
    _, bucket, key = parts.path.split("/", 2)
    try:
        return client_of(parts).get_object(Bucket=bucket, Key=key)
    except botocore.exceptions.ClientError as error:
        return {"status": error.response["ResponseMetadata"]["HTTPStatusCode"]}


def request(method, url, body):
    answer = ask(url)
    if "status" in answer:
        return answer["status"]
    answer["Body"].read()
    return 200


def unread(url):
    ask(url)
    return 200
