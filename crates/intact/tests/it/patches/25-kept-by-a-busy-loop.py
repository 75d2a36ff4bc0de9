# rounds: 8
# Partly: 11 of 11 avoidable connections are gone; CPU time
from service import *

for number in range(REQUESTS):
    connection = client()
    send(connection, f"/{number}")
    connection.close()
# --- head
from service import *

connection = client()
for number in range(REQUESTS):
    send(connection, f"/{number}")
    for _ in range(1_000_000):
        pass
