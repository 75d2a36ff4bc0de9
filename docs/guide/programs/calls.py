"""python3 calls.py URL [COUNT]: sends COUNT requests, one after the other, each on a connection of its own."""
import sys
import urllib.request

url = sys.argv[1]
for _ in range(int(sys.argv[2]) if len(sys.argv) > 2 else 20):
    with urllib.request.urlopen(url) as response:
        response.read()
