# Yes: 11 of 11 avoidable connections are gone
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
