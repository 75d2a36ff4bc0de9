# No: 11 of 11 avoidable connections are still opened (new-client-per-request)
from service import *

for number in range(REQUESTS):
    connection = client()
    send(connection, f"/{number}")
    connection.close()
# --- head
from service import *

clients = {}
for number in range(REQUESTS):
    connection = clients.setdefault(number, client())
    send(connection, f"/{number}")
