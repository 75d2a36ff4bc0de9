#!/usr/bin/env python3
"""The card of `watch --fault` for common HTTP clients: with defaults, and after the remedy that `intact fix` prints.

    cargo build -p intact -p xtask && docs/internals/cards.py target/debug
    docs/internals/cards.py target/debug requests go-net-http --scheme https

The programs are those of the catalogue (`clients/`): `xtask clients --commands` installs and builds them. Each makes GETs and
POSTs in turn on a kept connection, once without a fault and once for each kind. Three sources are compared, and it ends with 1 if one
of these differs:

- requests in the ledger of `intact serve`, and `reached` of the card;
- POSTs that this ledger holds twice, and `duplicated` of the card;
- requests that failed for the program, and `failed` of the card.

Prints a row for each client, scheme and remedy. `serve` listens on loopback at a free port. A card takes 20 to 60 s.
"""

import argparse
import collections
import itertools
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

FAULTS = "each,nat-idle=200ms,max-age=900ms"
WAIT, TIMEOUT_MS = "6s", "2000"
METHODS = ["GET", "POST", "GET", "POST", "GET"]
PAUSE = 0.4
CLIENTS = {
    "node-http": ("default", "timeout"),
    "fetch": ("default", "timeout"),
    "undici": ("default", "timeout"),
    "axios": ("default", "timeout"),
    "go-net-http": ("default", "timeout"),
    "requests": ("session", "timeout"),
    "httpx": ("client", "timeout", "http2"),
    "aiohttp": ("session", "timeout"),
    "java-net-http": ("default", "timeout"),
    "java-httpurlconnection": ("default", "timeout"),
    "okhttp": ("default", "timeout"),
    "reqwest": ("client", "timeout"),
    "pycurl": ("handle", "timeout"),
    "curl": ("default", "timeout"),
}
TRUST = ["INTACT_CA", "NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"]


def feed(base, folder, command):
    """Under `watch`: starts the program, makes its requests, and writes what it reported. Opens no connection itself."""
    number = len(os.listdir(folder))
    out = open(os.path.join(folder, str(number)), "w")
    program = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    program.stdout.readline()
    for nth, method in enumerate(METHODS):
        if nth:
            time.sleep(PAUSE)
        print(f"1 in-turn {method} read {base}-{number}/{nth}", file=program.stdin, flush=True)
        print(program.stdout.readline().strip(), file=out, flush=True)
    program.stdin.close()
    sys.exit(program.wait())


def curl(base, folder, command):
    """The same with the command line of curl, which is one process for all requests and pauses between them."""
    number = len(os.listdir(folder))
    limit = command[3:]
    for nth, method in enumerate(METHODS):
        data = ["--data", "ping"] if method == "POST" else []
        command += [*(["--next", *limit] if nth else []), "-s", "-o", "/dev/null", "-w", '["%{http_code} %{exitcode}"]\\n', *data, f"{base}-{number}/{nth}"]
    with open(os.path.join(folder, str(number)), "w") as out:
        subprocess.run(command, stdout=out)


def launches(xtask, names):
    """How each variant is started; the last runtime of several is the newest."""
    wanted = [f"{name}/{variant}" for name in names for variant in CLIENTS[name] if name != "curl"]
    found = {}
    if wanted:
        words = [xtask, "clients", "--commands", *wanted]
        out = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True).stdout
        for one in (json.loads(line) for line in out.splitlines() if line.startswith("{")):
            found[one["name"].split(" on ")[0]] = one
    limit = ["--max-time", str(int(TIMEOUT_MS) / 1000)]
    for variant, words in (("default", []), ("timeout", limit)):
        command = ["curl", "--rate", "150/m", *words]
        found[f"curl/{variant}"] = {"words": command, "folder": os.getcwd(), "variables": [], "feed": "--curl"}
    return found


class Server:
    """`intact serve` with a ledger."""

    def __init__(self, intact, folder):
        self.folder, self.ca = os.path.join(folder, "server"), os.path.join(folder, "ca.pem")
        words = [intact, "serve", "--listen", "127.0.0.1:0", "--tls-listen", "127.0.0.1:0", "--body", "100"]
        words += ["--ledger", self.folder, "--write-ca", self.ca]
        self.child = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        self.bases = {}
        while len(self.bases) < 2:
            found = re.search(r"^(https?)://[^/]+", self.child.stdout.readline())
            self.bases[found[1]] = found[0]

    def end(self):
        """The requests of each run: method and path, with their number."""
        self.child.send_signal(signal.SIGTERM)
        self.child.wait()
        file = os.path.join(self.folder, "events.jsonl.zst")
        rows = subprocess.run(["zstd", "-dcq", file], capture_output=True, text=True, check=True).stdout
        served = collections.defaultdict(collections.Counter)
        for row in map(json.loads, rows.splitlines()):
            if row["event"] == "exchange":
                served[row["target"].split("/")[1]][row["method"], row["target"]] += 1
        return served


def card(intact, server, scheme, name, launch, folder):
    """The card, and what the program reported in each run."""
    seen, path = os.path.join(folder, "seen-" + name.replace("/", "-") + scheme), os.path.join(folder, "card.json")
    os.mkdir(seen)
    base = f"{server.bases[scheme]}/{name.replace('/', '-')}-{scheme}"
    words = [intact, "watch", "-q", f"--json={path}", "--fault", FAULTS, "--fault-wait", WAIT, "--"]
    words += [sys.executable, os.path.abspath(__file__), launch.get("feed", "--feed"), base, seen, *launch["words"]]
    environment = os.environ | dict(launch["variables"]) | {"INTACT_TIMEOUT_MS": TIMEOUT_MS} | {name: server.ca for name in TRUST}
    with open(os.path.join(folder, "stderr"), "a") as errors:
        subprocess.run(words, cwd=launch["folder"], env=environment, stdin=subprocess.DEVNULL, stdout=errors, stderr=errors, timeout=900)
    with open(path) as file:
        document = json.load(file)
    reported = []
    for number in range(len(os.listdir(seen))):
        with open(os.path.join(seen, str(number))) as file:
            reported.append([json.loads(line)[0] for line in file if line.strip()])
    return document, reported


def is_ok(status):
    return status in (200, "200 0")


def bounds(cell, name):
    """The smallest and the largest value of a figure of a cell; none was affected where the fault was not applied."""
    if cell[name] is not None:
        return cell[name], cell[name]
    if cell["not_applied"]:
        return 0, 0
    known = cell["bounds"][name]
    return known.get("low", 0), known.get("high", float("inf"))


def differences(document, reported, served, prefix):
    """What the sources do not agree on."""
    for number, run in enumerate(document["runs"]):
        counts = served[f"{prefix}-{number}"]
        cells = [cell for cell in document["cells"] if cell["name"] == run["name"]]

        def between(what, value, at_most=None):
            least, most = map(sum, zip(*(bounds(cell, what) for cell in cells)))
            if value > most or least > (at_most or value):
                yield f"{run['name']}: {what}: the card has {least} to {most}, and it was {value}"

        if not cells:
            if sum(counts.values()) != run["requests"]:
                yield f"{run['name']}: the server counted {sum(counts.values())} requests, the run {run['requests']}"
            continue
        yield from between("reached", sum(counts.values()))
        if any(cell["not_applied"] in ("no-further-request", "not-used") for cell in cells):
            continue
        failed = sum(not is_ok(status) for status in reported[number])
        # a body that the program took for complete, although it was cut
        yield from between("failed", failed, failed + sum(bounds(cell, "truncated")[1] for cell in cells))
        yield from between("duplicated", sum(count - 1 for (method, _), count in counts.items() if method == "POST"))


def row(name, scheme, document, reported, served, prefix):
    """A row of the table."""
    # a connection whose host is not known has a row of its own, by address
    cells = [cell for cell in document["cells"] if cell["outcome"] != "unsuited" and cell["not_applied"] != "not-reached"]
    by_outcome = collections.defaultdict(list)
    for cell in cells:
        outcome = cell["outcome"] if cell["outcome"] != "not-applied" else "not shown: " + cell["not_applied"]
        by_outcome[outcome].append(cell["name"].split("=")[0])
    hung = max(bounds(cell, "hung_ms") for cell in cells)
    wait = f"{'≥ ' if hung[1] > hung[0] else ''}{hung[0] / 1000:.1f} s"
    runs = [served[f"{prefix}-{number}"] for number in range(len(document["runs"]))]
    twice = sum(count - 1 for counts in runs for (method, _), count in counts.items() if method == "POST")
    outcomes = "; ".join(f"{outcome}: {', '.join(kinds)}" for outcome, kinds in sorted(by_outcome.items()))
    failed = sum(not is_ok(status) for run in reported for status in run)
    reached = [sum(bounds(cell, "reached")[end] for cell in document["cells"]) + document["runs"][0]["requests"] for end in (0, 1)]
    both = f"{sum(sum(counts.values()) for counts in runs)} / {reached[0] if reached[0] == reached[1] else f'{reached[0]}–{reached[1]}'}"
    return f"| {name} | {scheme} | {wait} | {failed} | {twice} | {both} | {outcomes} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("built", help="the folder with intact and xtask")
    parser.add_argument("names", nargs="*", default=[], help="clients of the catalogue; none: all")
    parser.add_argument("--scheme", choices=["http", "https"], action="append")
    parser.add_argument("--keep", metavar="DIR", help="write each card there")
    given = parser.parse_args()
    intact = os.path.abspath(os.path.join(given.built, "intact"))
    names = given.names or list(CLIENTS)
    started = launches(os.path.abspath(os.path.join(given.built, "xtask")), names)
    rows, cards = [], []
    with tempfile.TemporaryDirectory() as folder:
        server = Server(intact, folder)
        for name, scheme in itertools.product(names, given.scheme or ["http", "https"]):
            for variant in CLIENTS[name]:
                one = f"{name}/{variant}"
                document, reported = card(intact, server, scheme, one, started[one], folder)
                cards.append((one, scheme, document, reported))
                print(f"{one} {scheme}: {document['verdict'][0]}", file=sys.stderr, flush=True)
                if given.keep:
                    os.makedirs(given.keep, exist_ok=True)
                    with open(os.path.join(given.keep, f"{name}-{variant}-{scheme}.json"), "w") as file:
                        json.dump({"card": document, "reported": reported}, file)
        served = server.end()
    wrong = 0
    for one, scheme, document, reported in cards:
        prefix = f"{one.replace('/', '-')}-{scheme}"
        rows.append(row(one, scheme, document, reported, served, prefix))
        for difference in differences(document, reported, served, prefix):
            wrong += 1
            print(f"{one} {scheme}: {difference}", file=sys.stderr)
    print("| client | scheme | longest wait | failed | POST twice (server) | requests: server / card | outcomes |")
    print("| --- | --- | --: | --: | --: | --: | --- |")
    print("\n".join(rows))
    print(f"\n{len(cards)} cards, {wrong} differences")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    if sys.argv[1] in ("--feed", "--curl"):
        {"--feed": feed, "--curl": curl}[sys.argv[1]](sys.argv[2], sys.argv[3], sys.argv[4:])
    else:
        main()
