# serve: --idle-timeout 100ms
# Yes: failed requests 3 of 12 → 0 of 12; gone: stale-reuse
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

LIMIT = 0.05
connection, used = client(), time.monotonic()
for number in range(4):
    if time.monotonic() - used > LIMIT:
        connection.close()
    send(connection, f"/{number}")
    used = time.monotonic()
    time.sleep(0.4 if number == 1 else 0)
