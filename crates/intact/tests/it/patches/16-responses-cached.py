# Not shown: the programs did not do the same work
from service import *

for number in range(REQUESTS):
    connection = client()
    send(connection, "/rates")
    connection.close()
# --- head
from service import *

rates = None
for number in range(REQUESTS):
    rates = rates or send(client(), "/rates")
