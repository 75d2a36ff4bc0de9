# serve: --idle-timeout 100ms
# No: failed requests 0 of 12 → 3 of 12
from service import *

connection = client()
for number in range(4):
    send(connection, f"/{number}")
    if number == 1:
        connection.close()
        time.sleep(0.4)
# --- head
from service import *

connection = client()
for number in range(4):
    try:
        send(connection, f"/{number}")
    except FAILURES:
        connection.close()
    if number == 1:
        time.sleep(0.4)
