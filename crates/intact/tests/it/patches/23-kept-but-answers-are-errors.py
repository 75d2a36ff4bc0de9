# No: failed requests 0 of 36 → 36 of 36
from service import *

for number in range(REQUESTS):
    connection = client()
    send(connection, f"/{number}")
    connection.close()
# --- head
from service import *

connection = client()
for number in range(REQUESTS):
    send(connection, "/status/500")
