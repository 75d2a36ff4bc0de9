#!/usr/bin/env python3
"""How fast `intact audit` reads captures and logs, beside tshark and goaccess, in turn on the same machine.

    cargo build --release -p intact
    apt-get install tshark goaccess
    python3 docs/internals/speed.py target/release/intact                            # 500 MB, a million lines, 5 rounds
    python3 docs/internals/speed.py target/release/intact --megabytes 20 --lines 20000 --rounds 2

Makes the capture itself: `dumpcap` on loopback of `intact bench` (4 connections, keep-alive on and off, bodies of 24 kB) against
an `intact serve` of its own. The log is in the format that `audit` recommends for nginx: ten requests a connection, a thousand
clients. In each round every program reads the input once, the one that begins changes. Needs the right to capture.

Prints of each program the median and the range of MB/s or lines/s, processor time, the largest resident set, and what it counted;
then the ratio, round by round. A program that counts otherwise than `audit` is told, and is no reason to stop.
"""

import argparse
import json
import os
import pathlib
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

BODY = 24_000
FIELDS = ["tcp.stream", "frame.time_epoch", "http.request.method", "http.request.uri", "http.response.code", "http.connection"]
GOACCESS = ['--log-format=%h %^ %^ [%d:%t %^] "%r" %s %b "%R" "%u" %^', "--date-format=%d/%b/%Y", "--time-format=%T"]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(port):
    until = time.monotonic() + 30
    while time.monotonic() < until:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.05)
    sys.exit(f"nothing listens on port {port}")


def make_capture(intact, file, megabytes):
    """Loads a server of our own until the packets fill the file; the requests that were made."""
    port = free_port()
    requests = max(16, megabytes * 1_000_000 // (BODY + 600) // 2)
    server = subprocess.Popen(
        [intact, "serve", "--listen", f"127.0.0.1:{port}", "--tls-listen", "127.0.0.1:0", "--body", str(BODY)],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    dumpcap = None
    try:
        wait_for(port)
        dumpcap = subprocess.Popen(
            ["dumpcap", "-q", "-B", "256", "-i", "lo", "-f", f"tcp port {port}", "-w", file],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        said = []
        for line in dumpcap.stderr:
            said.append(line)
            if line.startswith("File:"):
                break
        else:
            sys.exit(f"dumpcap does not capture: {''.join(said)}")
        bench = subprocess.run(
            [intact, "bench", f"http://127.0.0.1:{port}/", "-n", str(requests), "-c", "4", "--rounds", "8",
             "--keepalive", "on,off", "--json"],
            check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        size = -1
        while size != os.path.getsize(file):
            size = os.path.getsize(file)
            time.sleep(0.5)
        dumpcap.send_signal(signal.SIGINT)
        told = dumpcap.communicate()[0] or ""
        if "dropped" in told:
            print(told.strip())
    finally:
        for child in filter(None, [dumpcap, server]):
            child.send_signal(signal.SIGINT)
            child.wait()
    variants = json.loads(bench.stdout)["variants"]
    return sum(one["requests"]["total"] + one["warmup"]["requests"] for one in variants)


def make_log(file, lines):
    start = 1_795_248_000
    with open(file, "w") as out:
        for at in range(lines):
            connection, nth = divmod(at, 10)
            when = start + at // 500
            clock = time.strftime("%d/%b/%Y:%H:%M:%S +0000", time.gmtime(when))
            client = connection % 1000
            out.write(
                f"10.0.{client // 250}.{client % 250 + 1} - - [{clock}] \"GET /v1/items/{at % 997}?page={at % 7} HTTP/1.1\" 200 {at % 5000 + 100} "
                f"\"-\" \"python-requests/2.31.0\" msec={when}.{at % 500 * 2:03d} rt=0.0{at % 90 + 10} conn={connection + 1} reqs={nth + 1} "
                "scheme=http host=api.example tls=- resumed=-\n")


def run(words, count):
    """Runs a program: seconds, processor seconds, largest resident set in MB, what it counted."""
    with tempfile.TemporaryFile() as out:
        begin = time.monotonic()
        child = subprocess.Popen(words, stdout=out, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        _, status, used = os.wait4(child.pid, 0)
        took = time.monotonic() - begin
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode != 0:
            sys.exit(f"{words[0]} ended with {child.returncode}: {' '.join(words)}")
        out.seek(0)
        counted = count(out)
    return took, used.ru_utime + used.ru_stime, used.ru_maxrss / 1000, counted


def rounds(programs, times, amount, unit):
    """Runs all in turn; prints them and the ratio of the second to the first."""
    results = {name: [] for name in programs}
    for turn in range(times):
        names = list(programs)
        for name in names if turn % 2 == 0 else reversed(names):
            results[name].append(run(*programs[name]))
    for name, all_of in results.items():
        rates = [amount / took for took, *_ in all_of]
        cpu = statistics.median(cpu for _, cpu, *_ in all_of)
        memory = max(memory for _, _, memory, _ in all_of)
        counts = sorted({counted for *_, counted in all_of})
        print(f"  {name:<9} {statistics.median(rates):>12,.0f} {unit} ({min(rates):,.0f}-{max(rates):,.0f}), processor time "
              f"{cpu:.2f} s, largest resident set {memory:.1f} MB, requests {', '.join(map(str, counts))}")
    ours, theirs = results.values()
    ratios = [other[0] / one[0] for one, other in zip(ours, theirs)]
    print(f"  ratio     {statistics.median(ratios):.1f} (round by round {', '.join(f'{ratio:.1f}' for ratio in ratios)})")


def main():
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("intact", help="the program, built with --release")
    words.add_argument("--megabytes", type=int, default=500, help="of the capture (500)")
    words.add_argument("--lines", type=int, default=1_000_000, help="of the log (1,000,000)")
    words.add_argument("--rounds", type=int, default=5)
    words.add_argument("--folder", help="where the inputs are made and left; without it they are removed")
    asked = words.parse_args()
    for needed in ["dumpcap", "tshark", "goaccess"]:
        if not shutil.which(needed):
            sys.exit(f"{needed} is not installed")
    intact = os.path.abspath(asked.intact)
    with tempfile.TemporaryDirectory() as own:
        folder = pathlib.Path(asked.folder or own)
        folder.mkdir(parents=True, exist_ok=True)
        capture, log = str(folder / "speed.pcapng"), str(folder / "speed.log")
        made = make_capture(intact, capture, asked.megabytes)
        size = os.path.getsize(capture) / 1e6
        load = os.getloadavg()[0]
        print(f"capture of {size:.0f} MB, {made} requests made; load {load:.1f}")
        total = lambda out: json.load(out)["requests"]["total"]
        lines = lambda out: sum(1 for line in out if line.split(b"\t")[2])
        tshark = ["tshark", "-n", "-r", capture, "-Y", "http", "-T", "fields"]
        for field in FIELDS:
            tshark += ["-e", field]
        rounds({
            "audit": ([intact, "audit", capture, "--json"], total),
            "tshark": (tshark, lines),
        }, asked.rounds, size, "MB/s")
        make_log(log, asked.lines)
        size = os.path.getsize(log) / 1e6
        print(f"log of {asked.lines:,} lines, {size:.0f} MB; load {os.getloadavg()[0]:.1f}")
        valid = lambda out: json.load(out)["general"]["valid_requests"]
        rounds({
            "audit": ([intact, "audit", log, "--json"], total),
            "goaccess": (["goaccess", log, *GOACCESS, "--no-progress", "-o", "json"], valid),
        }, asked.rounds, asked.lines, "lines/s")


if __name__ == "__main__":
    main()
