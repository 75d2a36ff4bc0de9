# serve: --delay 100ms
# No: new: connection-shared-by-processes
from service import *
import multiprocessing


def work():
    connection = client()
    send(connection)
    connection.close()


send(client())
workers = [multiprocessing.Process(target=work) for _ in range(3)]
for worker in workers:
    worker.start()
for worker in workers:
    worker.join()
# --- head
from service import *
import multiprocessing

connection = client()


def work():
    try:
        send(connection)
    except FAILURES:
        pass


send(connection)
workers = [multiprocessing.Process(target=work) for _ in range(3)]
for worker in workers:
    worker.start()
for worker in workers:
    worker.join()
