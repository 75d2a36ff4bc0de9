# rounds: 8
# Partly: 11 of 11 avoidable connections are gone; memory
from service import *

for number in range(REQUESTS):
    connection = client()
    send(connection, f"/{number}")
    connection.close()
# --- head
from service import *

connection, kept = client(), []
for number in range(REQUESTS):
    send(connection, f"/{number}")
    kept.append(b"x" * 8_000_000)
