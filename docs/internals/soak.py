#!/usr/bin/env python3
"""Memory and descriptors of bench, watch and serve over a long time at a low rate.

    cargo build --release -p intact && docs/internals/soak.py target/release/intact
    docs/internals/soak.py target/release/intact --time 600 --every 30

`serve` responds after 20 ms, on loopback at a free port. `bench` loads it with keep-alive on and off, and `watch` records a Python
program that sends ten requests a second, every tenth on a new connection. Each row has the resident memory in MB and the open
descriptors of each. Ends with 1 if the memory of one grew by more than 1 MB and 10 % from the first third to the last, or if it held
more than 8 more descriptors at the end: a leak grows with time, and a table of rounds or histograms does not.
"""

import argparse
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

CLIENT = """
import http.client, sys, time
host, port, until = sys.argv[1], int(sys.argv[2]), time.time() + float(sys.argv[3])
connection, count = None, 0
while time.time() < until:
    if connection is None or count % 10 == 0:
        if connection is not None: connection.close()
        connection = http.client.HTTPConnection(host, port, timeout=10)
    connection.request("GET", "/")
    connection.getresponse().read()
    count += 1
    time.sleep(0.1)
"""


def memory(pid):
    """Resident memory in MB, and open descriptors; None if the process is gone."""
    try:
        with open(f"/proc/{pid}/status") as status:
            found = re.search(r"VmRSS:\s+(\d+) kB", status.read())
        return (int(found[1]) / 1024, len(os.listdir(f"/proc/{pid}/fd"))) if found else None
    except OSError:
        return None


def grown(values):
    """Means of the first and of the last third of the samples, without the start."""
    values = values[1:]
    third = max(len(values) // 3, 1)
    return sum(values[:third]) / third, sum(values[-third:]) / third


def main():
    parse = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parse.add_argument("intact")
    parse.add_argument("--time", type=float, default=3600, help="seconds [3600]")
    parse.add_argument("--every", type=float, default=60, help="seconds between two samples [60]")
    parse.add_argument("--only", action="append", help="bench, watch or serve; may be repeated")
    options = parse.parse_args()
    work = tempfile.TemporaryDirectory()
    log = open(os.path.join(work.name, "log"), "w")

    def start(*words, **more):
        return subprocess.Popen([options.intact, *words], stdout=more.get("stdout", log), stderr=log, text=True)

    serve = start("serve", "--listen", "127.0.0.1:0", "--tls-listen", "127.0.0.1:0", "--delay", "20ms", stdout=subprocess.PIPE)
    url = None
    for line in serve.stdout:
        found = re.search(r"http://127\.0\.0\.1:(\d+)", line)
        if found:
            url, port = found[0], found[1]
            break
    if url is None:
        sys.exit("serve did not print its address")
    length = f"{options.time / 2:.0f}s"
    programs = {
        # two variants, which share the time
        "bench": lambda: start("bench", url, "-z", length, "--keepalive", "on,off", "-c", "2"),
        "watch": lambda: start("watch", "--", sys.executable, "-c", CLIENT, "127.0.0.1", port, str(options.time)),
    }
    running = {name: begin() for name, begin in programs.items() if not options.only or name in options.only}
    if not options.only or "serve" in options.only:
        running["serve"] = serve
    samples = {name: [] for name in running}
    print("seconds  " + "  ".join(f"{name:>7} MB   fds" for name in running), flush=True)
    begun = time.monotonic()
    try:
        while time.monotonic() - begun < options.time - options.every / 2:
            time.sleep(options.every)
            row = []
            for name, process in running.items():
                # a zombie has no memory
                seen = memory(process.pid) if process.poll() is None else None
                if seen:
                    samples[name].append(seen)
                row.append(f"{seen[0]:10.1f} {seen[1]:5d}" if seen else " " * 16)
            print(f"{time.monotonic() - begun:7.0f}  " + "  ".join(row), flush=True)
    finally:
        for process in [*running.values(), serve]:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
        for process in [*running.values(), serve]:
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
    leaks = []
    for name, seen in samples.items():
        if len(seen) < 7:
            leaks.append(f"{name}: only {len(seen)} samples, nothing can be concluded")
            continue
        first, last = grown([one[0] for one in seen])
        few, many = seen[1][1], seen[-1][1]
        print(f"{name}: {first:.1f} MB in the first third, {last:.1f} MB in the last; {few} descriptors, then {many}")
        if last - first > 1 and last > first * 1.1:
            leaks.append(f"{name}: memory grew")
        if many - few > 8:
            leaks.append(f"{name}: descriptors grew")
    for leak in leaks:
        print(leak)
    sys.exit(1 if leaks else 0)


if __name__ == "__main__":
    main()
