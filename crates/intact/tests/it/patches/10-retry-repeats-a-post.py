# No: failed requests 3 of 18 → 6 of 21; new: retried-request
from service import *

for number in range(6):
    connection = client()
    try:
        send(connection, "/fault/close-before-answer" if number == 3 else f"/{number}", "POST")
    except FAILURES:
        pass
    connection.close()
# --- head
from service import *

connection = client()
for number in range(6):
    for attempt in range(2):
        try:
            send(connection, "/fault/close-before-answer" if number == 3 else f"/{number}", "POST")
            break
        except FAILURES:
            connection.close()
