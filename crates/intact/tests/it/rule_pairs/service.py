"""A service that runs a command before it listens, or with the variable WHILE while it does: service.py COMMAND..."""

import http.server
import os
import subprocess
import sys


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


command = subprocess.Popen(sys.argv[1:])
if "WHILE" not in os.environ and command.wait():
    sys.exit(1)
port = int(os.environ.get("PORT", "7070"))
http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()
