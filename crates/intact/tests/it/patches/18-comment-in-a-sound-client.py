# Not shown
from service import *

connection = client()
for number in range(REQUESTS):
    send(connection, f"/{number}")
# --- head
from service import *

# one connection
connection = client()
for number in range(REQUESTS):
    send(connection, f"/{number}")
