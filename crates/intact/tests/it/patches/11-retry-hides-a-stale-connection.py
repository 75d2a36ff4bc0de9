# serve: --idle-timeout 100ms
# No: stale-reuse stays
from service import *

connection = client()
for number in range(4):
    try:
        send(connection, f"/{number}")
    except FAILURES:
        connection.close()
    time.sleep(0.4 if number == 1 else 0)
# --- head
from service import *

connection = client()
for number in range(4):
    try:
        send(connection, f"/{number}")
    except FAILURES:
        connection.close()
        send(connection, f"/{number}")
    time.sleep(0.4 if number == 1 else 0)
