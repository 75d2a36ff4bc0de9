#!/usr/bin/env python3
"""Load generators side by side: client CPU per request, in interleaved rounds, as ratios within each round.

    docs/internals/peers.py target/release/intact [--rounds 9] [--seconds 2] [--scenarios a,b,c,d,e1,e32]
        [--clients wrk,h2load,oha,floor,epoll,auto,uring] [--connections 64]

Needs nginx, openssl and the peers that --clients names; a peer that is not installed is left out, and named. Loopback
only. The client runs on core 0, nginx (one worker) on core 1. nginx counts requests and connections (stub_status), so no
client's arithmetic is trusted. The time is that of the client's process (wait4), user and system. `floor` is floor.c,
which needs cc: the system calls of a client and nothing else.

Per scenario: the median over the rounds of µs per request, of requests/s, and of the ratio to the first client of the
same round, with the lowest and the highest ratio. A client that does not end in time has no figure in that round.
"""
import argparse
import os
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time

HOST = "127.0.0.1"
# name: scheme, port of NGINX, keep-alive, HTTP version, streams per connection, what it is
SCENARIOS = {
    "a": ("http", 0, True, "1.1", 1, "HTTP/1.1, keep-alive"),
    "b": ("https", 1, True, "1.1", 1, "HTTP/1.1, TLS 1.3, keep-alive"),
    "c": ("http", 0, False, "1.1", 1, "HTTP/1.1, a connection per request, closed by FIN"),
    "d": ("https", 1, False, "1.1", 1, "HTTP/1.1, a full TLS 1.3 handshake per request"),
    "e1": ("https", 2, True, "2", 1, "HTTP/2, TLS 1.3, one stream per connection"),
    "e32": ("https", 2, True, "2", 32, "HTTP/2, TLS 1.3, 32 streams per connection"),
}
PEERS = ("wrk", "h2load", "oha")
NGINX = """daemon off; worker_processes 1; worker_rlimit_nofile 20000; pid {0}/pid; error_log {0}/error.log crit; {user}
events {{ worker_connections 18000; multi_accept on; }}
http {{ access_log off; keepalive_requests 1000000000; keepalive_timeout 600s; server_tokens off;
 client_body_temp_path {0}/1; proxy_temp_path {0}/2; fastcgi_temp_path {0}/3; uwsgi_temp_path {0}/4; scgi_temp_path {0}/5;
 ssl_certificate {0}/cert.pem; ssl_certificate_key {0}/key.pem; ssl_protocols TLSv1.3;
 ssl_session_tickets off; ssl_session_cache off;
 server {{ listen 127.0.0.1:{1} backlog=4096; location / {{ return 200 "{body}"; }} }}
 server {{ listen 127.0.0.1:{2} ssl backlog=4096; location / {{ return 200 "{body}"; }} }}
 server {{ listen 127.0.0.1:{3} ssl http2 backlog=4096; location / {{ return 200 "{body}"; }} }}
 server {{ listen 127.0.0.1:{4}; location / {{ stub_status; }} }} }}"""


def command(client, intact, url, scenario, connections, seconds, trust):
    """The words of a client, or None where it has no such mode."""
    _, _, kept, http, streams, _ = SCENARIOS[scenario]
    if client == "floor":
        if url.startswith("https"):
            return None
        port = url.rstrip("/").rpartition(":")[2]
        return [f"{os.path.dirname(trust)}/floor", "keep" if kept else "close", port, str(connections), str(seconds)]
    if client == "wrk":
        if http == "2":
            return None
        close = [] if kept else ["-H", "Connection: close"]
        return ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", *close, url]
    if client == "h2load":
        # With connections that close, -D does not end (seen in 1.52): a number of requests there.
        many = {"c": 15_000, "d": 1_800}.get(scenario, 0) * seconds
        length = [f"-n{many}"] if many else [f"-D{seconds}"]
        form = [] if http == "2" else ["--h1"]
        close = [] if kept else ["-H", "connection: close"]
        return ["h2load", "-t1", f"-c{connections}", f"-m{streams}", *length, *form, *close, url]
    if client == "oha":
        form = ["--http2", "-p", str(streams)] if http == "2" else []
        close = [] if kept else ["--disable-keepalive"]
        return ["oha", "--no-tui", "--worker-threads", "1", "-c", str(connections), "-z", f"{seconds}s", "--insecure",
                *form, *close, url]
    words = [intact, "bench", url, "-c", str(connections), "-z", f"{seconds}s", "--http", http, "--streams", str(streams),
             "--threads", "1", "--rounds", "1", "--keepalive", "on" if kept else "off", "--io", client]
    if url.startswith("https"):
        words += ["--cacert", trust, "--tls", "1.3", "--resume", "off"]
    return words


def counts(port):
    """Accepted connections and requests, as nginx counts them."""
    with socket.create_connection((HOST, port), 2) as link:
        link.sendall(b"GET / HTTP/1.0\r\n\r\n")
        text = b"".join(iter(lambda: link.recv(4096), b"")).decode()
    accepted, _, requests = map(int, re.search(r"(\d+) (\d+) (\d+)", text.split("requests")[1]).groups())
    return accepted, requests


def measure(words, stat):
    """CPU µs per request, requests/s, connections."""
    before = counts(stat)
    start = time.monotonic()
    # wrk over TLS without keep-alive does not always end
    words = ["timeout", "-k", "1", "30", "taskset", "-c", "0", *words]
    child = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    said = child.stderr.read().decode(errors="replace")
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    wall = time.monotonic() - start
    time.sleep(0.3)
    after = counts(stat)
    if child.returncode in (124, 137):
        return None
    requests = after[1] - before[1] - 1
    if child.returncode or requests < 100:
        sys.exit(f"{' '.join(words)}: exit {child.returncode}, {requests} requests\n{said[-2000:]}")
    cpu = usage.ru_utime + usage.ru_stime
    return cpu * 1e6 / requests, requests / wall, after[0] - before[0] - 1


def free_ports(count):
    held = [socket.socket() for _ in range(count)]
    for one in held:
        one.bind((HOST, 0))
    ports = [one.getsockname()[1] for one in held]
    for one in held:
        one.close()
    return ports


def print_scenario(name, clients, rows, words):
    print(f"\n{name}: {SCENARIOS[name][5]}\n")
    print("| client | µs | ratio to the first | requests/s | connections |\n| --- | --: | --: | --: | --: |")
    base = rows[clients[0]]
    for client in clients:
        ratios = [mine[0] / first[0] for mine, first in zip(rows[client], base) if mine and first]
        if not ratios:
            print(f"| {client} | did not end | | | |")
            continue
        mid = [statistics.median(row[place] for row in rows[client] if row) for place in range(3)]
        print(f"| {client} | {mid[0]:.2f} | {statistics.median(ratios):.3f} ({min(ratios):.3f}-{max(ratios):.3f}) "
              f"| {mid[1]:,.0f} | {mid[2]:,.0f} |")
    for client in clients:
        print(f"    {' '.join(words[client])}", flush=True)


def main():
    options = argparse.ArgumentParser()
    options.add_argument("intact")
    options.add_argument("--rounds", type=int, default=9)
    options.add_argument("--seconds", type=int, default=2)
    options.add_argument("--connections", type=int, default=64)
    options.add_argument("--scenarios", default=",".join(SCENARIOS))
    options.add_argument("--clients", default="wrk,h2load,oha,floor,epoll,auto,uring")
    given = options.parse_args()
    asked = given.clients.split(",")
    missing = [client for client in asked if client in PEERS and not shutil.which(client)]
    if missing:
        print(f"not installed, left out: {', '.join(missing)}")
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days",
             "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-addext",
             "basicConstraints=critical,CA:FALSE", "-keyout", f"{folder}/key.pem", "-out", f"{folder}/cert.pem"],
            check=True, capture_output=True)
        if "floor" in asked:
            source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "floor.c")
            subprocess.run(["cc", "-O2", "-o", f"{folder}/floor", source], check=True)
        ports = free_ports(4)
        user = "user root;" if os.getuid() == 0 else ""
        with open(f"{folder}/nginx.conf", "w") as conf:
            conf.write(NGINX.format(folder, *ports, body="x" * 100, user=user))
        nginx = subprocess.Popen(["taskset", "-c", "1", "nginx", "-p", folder, "-c", f"{folder}/nginx.conf"],
                                 stderr=subprocess.DEVNULL)
        try:
            time.sleep(0.5)
            print(f"rounds {given.rounds} x {given.seconds} s, {given.connections} connections, one client thread")
            loads = []
            for name in given.scenarios.split(","):
                scheme, place, *_ = SCENARIOS[name]
                url = f"{scheme}://{HOST}:{ports[place]}/"
                words = {client: command(client, given.intact, url, name, given.connections, given.seconds,
                                         f"{folder}/cert.pem") for client in asked if client not in missing}
                words = {client: line for client, line in words.items() if line}
                clients = list(words)
                rows = {client: [] for client in clients}
                for turn in range(given.rounds):
                    loads.append(os.getloadavg()[0])
                    for client in clients if turn % 2 == 0 else clients[::-1]:
                        rows[client].append(measure(words[client], ports[3]))
                shown = {client: [word.replace(folder, "FOLDER").replace(given.intact, "intact") for word in line]
                         for client, line in words.items()}
                print_scenario(name, clients, rows, shown)
            print(f"\nload average: median {statistics.median(loads):.2f}, {min(loads):.2f}-{max(loads):.2f}")
        finally:
            nginx.terminate()
            nginx.wait()


main()
