# Partly: 6 of 11 avoidable connections are gone; 5 are still opened
from service import *


def charge(number):
    connection = client()
    send(connection, f"/{number}")
    connection.close()


def refund(number):
    connection = client()
    send(connection, f"/{number}")
    connection.close()


for number in range(6):
    charge(number)
    refund(number)
# --- head
from service import *

kept = client()


def charge(number):
    send(kept, f"/{number}")


def refund(number):
    connection = client()
    send(connection, f"/{number}")
    connection.close()


for number in range(6):
    charge(number)
    refund(number)
