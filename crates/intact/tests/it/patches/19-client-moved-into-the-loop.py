# No: avoidable connections 0 → 11
from service import *

connection = client()
for number in range(REQUESTS):
    send(connection, f"/{number}")
# --- head
from service import *

for number in range(REQUESTS):
    connection = client()
    send(connection, f"/{number}")
    connection.close()
