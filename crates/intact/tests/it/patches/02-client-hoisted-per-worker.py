# Partly: 8 of 11 avoidable connections are gone; 3 are still opened
from service import *
import multiprocessing


def work(numbers):
    for number in numbers:
        connection = client()
        send(connection, f"/{number}")
        connection.close()


for worker in range(4):
    process = multiprocessing.Process(target=work, args=(range(3),))
    process.start()
    process.join()
# --- head
from service import *
import multiprocessing


def work(numbers):
    connection = client()
    for number in numbers:
        send(connection, f"/{number}")


for worker in range(4):
    process = multiprocessing.Process(target=work, args=(range(3),))
    process.start()
    process.join()
