"""A name server on 127.0.0.53 and a web server on port 80, then a command that uses them; in namespaces of its own.

names.py FOLDER COMMAND...: FOLDER/questions is written with one line for each question that came. Names that begin with `moving`
lead to 127.0.0.1 the first time they are asked for and to 127.0.0.2 ever after; those that begin with `several` lead to
127.0.0.1 to 127.0.0.3; `row-2-1` leads to 127.1.2.1, and `wide-2-1` to 127.1.2.1, 127.1.2.11 and 127.1.2.21.
"""

import collections
import http.server
import os
import socket
import struct
import subprocess
import sys
import threading
import time

folder, command = sys.argv[1], sys.argv[2:]
resolver = os.environ.get("RESOLVER", "127.0.0.53")
with open(folder + "/resolv.conf", "w") as file:
    file.write(f"nameserver {resolver}\noptions timeout:1 attempts:1\n")
subprocess.run(["mount", "--bind", folder + "/resolv.conf", "/etc/resolv.conf"], check=True)
subprocess.run(["ip", "link", "set", "lo", "up"], check=True)

names = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
names.bind(("127.0.0.53", 53))
questions = open(folder + "/questions", "w", buffering=1)
asked = collections.Counter()


def answer(question, client):
    end = question.index(b"\0", 12)
    kind = struct.unpack("!H", question[end + 1 : end + 3])[0]
    name = question[12:end].lower()
    questions.write(f"{name} {kind}\n")
    if name.startswith(b"\6silent"):
        return
    time.sleep(0.01)
    missing = name.startswith(b"\7missing")
    hosts = [1, 2, 3] if name.startswith(b"several", 1) else [1]
    network = bytes([127, 0, 0])
    if name.startswith((b"row-", b"wide-"), 1):
        width, row, host = name[1 : 1 + name[0]].split(b"-")
        network, hosts = bytes([127, 1, int(row)]), [int(host) + more for more in ([0] if width == b"row" else [0, 10, 20])]
    count = len(hosts) if kind == 1 and not missing else 0
    head = question[:2] + struct.pack("!HHHHH", 0x8183 if missing else 0x8180, 1, count, 0, 0)
    is_moving = name.startswith(b"moving", 1)
    asked[name] += count
    hosts, ttl = ([2 if asked[name] > 1 else 1], 1) if is_moving else (hosts, 60)
    record = b"\xc0\x0c\0\1\0\1" + struct.pack("!IH", ttl, 4) + network
    records = b"".join(record + bytes([host]) for host in hosts[:count])
    names.sendto(head + question[12 : end + 5] + records, client)


def serve_names():
    while True:
        threading.Thread(target=answer, args=names.recvfrom(512)).start()


class Web(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "5")
        self.end_headers()
        self.wfile.write(b"hello")

    def log_message(self, *_):
        pass


threading.Thread(target=serve_names, daemon=True).start()
web = http.server.ThreadingHTTPServer(("", 80), Web)
threading.Thread(target=web.serve_forever, daemon=True).start()
sys.exit(subprocess.run(command).returncode)
