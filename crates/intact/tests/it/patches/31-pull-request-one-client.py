# Yes: 11 of 11 avoidable connections are gone
# request: w4/gitlab-cargo-shim#69, Re-use single http client / connection pool
from service import *


class Provider:
    def client(self):
        return client()

    def fetch(self, path):
        return send(self.client(), path, headers={"Authorization": "token"})


provider = Provider()
for number in range(REQUESTS):
    provider.fetch(f"/{number}")
# --- head
from service import *


class Provider:
    def __init__(self):
        self.shared = client()

    def client(self):
        return self.shared

    def fetch(self, path):
        return send(self.client(), path, headers={"Authorization": "token"})


provider = Provider()
for number in range(REQUESTS):
    provider.fetch(f"/{number}")
