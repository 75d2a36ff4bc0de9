import os, requests
session = requests.Session()
def handler(event, context):
    return session.get(os.environ["INTACT_URL"]).status_code
