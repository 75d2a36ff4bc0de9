# No: 11 of 11 avoidable connections are still opened
from service import *

for number in range(REQUESTS):
    connection = client()
    send(connection, f"/{number}")
    connection.close()
# --- head
from service import *

for number in range(REQUESTS):
    connection = client()
    connection.connect()
    connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    send(connection, f"/{number}")
    connection.close()
