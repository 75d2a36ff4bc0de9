#!/usr/bin/env python3
"""Counts early data (0-RTT over TCP) three times: as `bench` does, as the server does, and as tshark sees it.

    early_data.py path/to/intact        needs nginx, openssl and tshark, and the right to capture on `lo`

A connection counts on the wire if its ClientHello has the extension `early_data`, and the client sent
application data before the server's first byte.
"""

import collections
import json
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import time

INTACT = pathlib.Path(sys.argv[1]).resolve()
REQUESTS = 39
NGINX = """
worker_processes 1; daemon off; pid nginx.pid; error_log error.log;
events {{ worker_connections 512; }}
http {{
  log_format early '$ssl_early_data $ssl_session_reused';
  access_log access.log early;
  server {{
    listen 127.0.0.1:{port} ssl http2;
    ssl_certificate cert.pem; ssl_certificate_key key.pem;
    ssl_protocols TLSv1.3; ssl_early_data on; ssl_session_cache shared:S:1m;
    location / {{ return 200 "hello\\n"; }}
  }}
}}
"""
FIELDS = ["tcp.stream", "tcp.srcport", "tls.handshake.type", "tls.handshake.extension.type",
          "tls.record.content_type", "tls.record.opaque_type"]


def bench(port, ca, http, folder):
    """Connections of `bench` with accepted early data, and all, by its ledger, and the connections on the wire."""
    capture, ledger = folder / f"{port}-{http}.pcapng", folder / f"{port}-{http}"
    sniffer = subprocess.Popen(["tshark", "-q", "-i", "lo", "-f", f"tcp port {port}", "-w", capture],
                               stderr=subprocess.PIPE, text=True)
    while "Capturing" not in sniffer.stderr.readline():
        pass
    time.sleep(1)  # tshark says so before it captures
    subprocess.run([INTACT, "bench", f"https://localhost:{port}/", "--cacert", ca, "--http", http,
                    "--keepalive", "off", "--resume", "on", "--early-data", "on", "-n", str(REQUESTS),
                    "--rounds", "1", "--ledger", ledger, "--rows", "all"],
                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(1)
    sniffer.send_signal(signal.SIGINT)
    sniffer.wait()
    tally = json.loads((ledger / "tally.json").read_text())
    kinds = collections.Counter()
    for cell in tally["cells"]:
        for _, kind, count in cell["connections"]["handshakes"]:
            kinds[kind] += count
    return kinds["early-data"], sum(kinds.values()), on_the_wire(capture, port)


def free_port():
    """A port on which nothing listens now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def on_the_wire(capture, port):
    """Connections that sent early data, by tshark."""
    fields = [word for field in FIELDS for word in ("-e", field)]
    rows = subprocess.run(["tshark", "-r", capture, "-d", f"tcp.port=={port},tls", "-Y", "tls", "-T", "fields", *fields],
                          capture_output=True, text=True, check=True).stdout
    offered, early, answered = set(), set(), set()
    for row in rows.splitlines():
        stream, source, hello, extensions, kind, opaque = (row.split("\t") + [""] * 6)[:6]
        if source == str(port):
            answered.add(stream)
            continue
        if "1" in hello.split(",") and "42" in extensions.split(","):
            offered.add(stream)
        if stream not in answered and "23" in (kind + "," + opaque).split(","):
            early.add(stream)
    return len(offered & early)


def main():
    failed = False
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                        "-keyout", "key.pem", "-out", "cert.pem", "-days", "2", "-subj", "/CN=localhost",
                        "-addext", "subjectAltName=DNS:localhost"], cwd=folder, check=True, stderr=subprocess.DEVNULL)
        print("server  http  connections  bench  server  tshark")
        tls_port = free_port()
        for http in ("1.1", "2"):
            (folder / "nginx.conf").write_text(NGINX.format(port=tls_port))
            (folder / "access.log").write_text("")
            nginx = subprocess.Popen(["nginx", "-p", folder, "-c", "nginx.conf", "-e", "error.log"], stderr=subprocess.DEVNULL)
            time.sleep(1)
            early, all_, wire = bench(tls_port, folder / "cert.pem", http, folder)
            nginx.terminate()
            nginx.wait()
            log = (folder / "access.log").read_text().splitlines()
            theirs = sum(line.startswith("1 ") for line in log)
            print(f"nginx   {http:4}  {all_:11}  {early:5}  {theirs:6}  {wire:6}")
            failed |= not early == theirs == wire
        tls_port = free_port()
        for http in ("1.1", "2"):
            totals = folder / f"serve-{http}.json"
            serve = subprocess.Popen([INTACT, "serve", "--listen", "127.0.0.1:0", "--tls-listen", f"127.0.0.1:{tls_port}",
                                      "--early-data", "--write-ca", "ca.pem", f"--json={totals}"],
                                     cwd=folder, stdout=subprocess.DEVNULL)
            time.sleep(2)
            early, all_, wire = bench(tls_port, folder / "ca.pem", http, folder)
            serve.send_signal(signal.SIGINT)
            serve.wait()
            kinds = json.loads(totals.read_text())["connections"]["handshakes"]
            theirs = sum(one["count"] for one in kinds if one["kind"] == "early-data")
            print(f"serve   {http:4}  {all_:11}  {early:5}  {theirs:6}  {wire:6}")
            failed |= not early == theirs == wire
    sys.exit(failed)


main()
