# No: failed requests
from service import *

open_now = threading.Semaphore(2)


def handle(connection):
    def serve():
        if not open_now.acquire(blocking=False):
            connection.close()
            return
        answer(connection)
        open_now.release()

    threading.Thread(target=serve, daemon=True).start()


port = server(handle)
pool = [client(port) for _ in range(2)]
for number in range(REQUESTS):
    send(pool[number % len(pool)], f"/{number}")
# --- head
from service import *

open_now = threading.Semaphore(2)


def handle(connection):
    def serve():
        if not open_now.acquire(blocking=False):
            connection.close()
            return
        answer(connection)
        open_now.release()

    threading.Thread(target=serve, daemon=True).start()


port = server(handle)
pool = [client(port) for _ in range(4)]
for number in range(REQUESTS):
    try:
        send(pool[number % len(pool)], f"/{number}")
    except FAILURES:
        pool[number % len(pool)].close()
