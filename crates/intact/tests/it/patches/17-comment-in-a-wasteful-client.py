# No: 11 of 11 avoidable connections are still opened (new-connection-per-request)
from service import *

for number in range(REQUESTS):
    connection = client()
    send(connection, f"/{number}")
    connection.close()
# --- head
from service import *

# reuses connections
for number in range(REQUESTS):
    connection = client()
    send(connection, f"/{number}")
    connection.close()
