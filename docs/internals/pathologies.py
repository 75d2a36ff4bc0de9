"""Which load generators find the latency of a server that is slow at set times.

    python3 docs/internals/pathologies.py INTACT [RUNS [PEER_RUNS [SERVER,... [PEER,... [BUSY [late]]]]]]

Each of five servers is `intact serve --script`, a process of its own. The truth is what it wrote of each request: from when it came
to when its response left, computed here, not by `intact`. The generators send 200 requests/s for 12 s to loopback (wrk and hey as
many as their loop allows). A percentile of `intact` is judged as it prints it. A number is right if it lies between the order statistics
(95 %) of the truth, within 10 %, and 2 ms on each side for the way between the two processes. Bounds are right if they hold the truth
within 2 ms. What it says that it cannot know is no error, and counted. Of the peers only the value is known: it is right within 10 % and
2 ms.

Servers and generators run in the real-time class (chrt -f 10, as root), so that other work of the machine does not delay them: a server
that waits for a processor does not see it in its own times. wrk takes all of a processor, and does without. BUSY loops run next to them;
with `late`, `intact` runs as `nice -n 15` and not in the real-time class.
"""

import json, math, os, re, shutil, signal, subprocess, sys, tempfile

INTACT = sys.argv[1]
RUNS = int(sys.argv[2]) if len(sys.argv) > 2 else 10
PEER_RUNS = int(sys.argv[3]) if len(sys.argv) > 3 else 3
RATE, SECONDS, CONNECTIONS = 200, 12, 300
WAY_MS = 2.0
REAL_TIME = ["chrt", "-f", "10"]
ALL_SCRIPTS = {
    "pause": "pause=1s/10s",
    "every 100th": "slow=200ms/100",
    "ramp": "ramp=200ms/10s",
    "stalled connection": "stall=3s@4s",
    "resets": "reset=1s@5s",
}
ASKED = sys.argv[4].split(",") if len(sys.argv) > 4 else list(ALL_SCRIPTS)
SCRIPTS = {name: ALL_SCRIPTS[name] for name in ASKED}
PEERS = sys.argv[5].split(",") if len(sys.argv) > 5 else ["wrk", "h2load", "hey", "oha", "k6"]
BUSY = int(sys.argv[6]) if len(sys.argv) > 6 else 0
CLIENT = ["nice", "-n", "15"] if "late" in sys.argv[7:] else REAL_TIME
K6 = """import http from 'k6/http';
export const options = { scenarios: { one: { executor: 'constant-arrival-rate', rate: %d, timeUnit: '1s', duration: '%ds',
 preAllocatedVUs: 10, maxVUs: 10 } } };
export default function () { http.get('http://127.0.0.1:%s/'); }"""
QUANTILES = (0.5, 0.9, 0.99, 0.999)


def serve(script, folder, prefix=REAL_TIME):
    rows = os.path.join(folder, "server")
    server = subprocess.Popen(
        prefix + [INTACT, "serve", "--listen", "127.0.0.1:0", "--tls-listen", "127.0.0.1:0", "--script", script, "--ledger", rows],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    for line in server.stdout:
        found = re.search(r"http://127\.0\.0\.1:(\d+)", line)
        if found:
            return server, found[1], rows
    raise SystemExit("intact serve did not start")


def end(server):
    server.send_signal(signal.SIGTERM)
    server.stdout.read()
    server.wait()


def of_server(folder):
    """Latencies in ms by the server's own times, and how many responses it did not complete."""
    good, bad = [], 0
    text = subprocess.run(["zstd", "-dc", os.path.join(folder, "events.jsonl.zst")], capture_output=True, text=True).stdout
    for line in text.splitlines():
        row = json.loads(line)
        if row["event"] != "exchange":
            continue
        if row["outcome"] == "ok":
            good.append((row["end"] - row["at"]) / 1e6)
        else:
            bad += 1
    return sorted(good), bad


def quantile(values, q):
    return values[min(len(values) - 1, math.ceil(q * len(values)) - 1)] if values else math.nan


def intact(port, folder):
    """The latency as it prints it, and how many requests failed."""
    path = os.path.join(folder, "client.json")
    loops = [subprocess.Popen([sys.executable, "-c", f"import time\nend = time.time() + {SECONDS + 20}\nwhile time.time() < end: pass"])
             for _ in range(BUSY)]
    subprocess.run(
        CLIENT + [INTACT, "bench", f"http://127.0.0.1:{port}/", "--rate", f"{RATE}/s", "-z", f"{SECONDS}s", "--keepalive", "on",
         "-c", str(CONNECTIONS), "--when-busy", "open", f"--json={path}"], check=False, capture_output=True)
    for one in loops:
        one.kill()
        one.wait()
    with open(path) as file:
        variant = json.load(file)["variants"][0]
    return variant["latency_ms"], sum(variant["requests"]["failed"].values())


def reading(latency, q):
    """Lower and upper end of a percentile; infinite where there is none."""
    key = f"p{100 * q:g}".replace(".", "")
    if latency[key] is not None:
        return latency[key], latency[key]
    bounds = latency["bounds"][key]
    return bounds.get("low", -math.inf), bounds.get("high", math.inf)


def is_right(truth, q, low, high):
    n = len(truth)
    if low < high:
        return low - WAY_MS <= quantile(truth, q) <= high + WAY_MS
    spread = 1.96 * math.sqrt(n * q * (1 - q))
    at = lambda rank: truth[min(n - 1, max(0, int(rank) - 1))]
    least, most = at(math.floor(n * q - spread)), at(math.ceil(n * q + spread))
    return 0.9 * least - WAY_MS <= low <= 1.1 * most + WAY_MS


def number(text, unit):
    return float(text) * {"us": 1e-3, "ms": 1.0, "s": 1e3, "secs": 1e3, "m": 6e4}[unit]


def wrk(port):
    out = subprocess.run(["wrk", "-t1", "-c10", f"-d{SECONDS}", "--latency", f"http://127.0.0.1:{port}/"],
                         capture_output=True, text=True).stdout
    found = dict(re.findall(r"^\s+(50|90|99)%\s+(\S+)$", out, re.M))
    return {float(key) / 100: number(*re.match(r"([\d.]+)([a-z]+)", value).groups()) for key, value in found.items()}


def h2load(port):
    log = tempfile.mktemp()
    subprocess.run(REAL_TIME + ["h2load", "--h1", "-c10", "-t1", f"--rps={RATE / 10}", f"-D{SECONDS}", f"--log-file={log}",
                    f"http://127.0.0.1:{port}/"], capture_output=True)
    with open(log) as file:
        # start (us since the epoch), status, duration (us)
        values = sorted(int(line.split()[2]) / 1e3 for line in file if line.split()[1] != "-1")
    os.unlink(log)
    return {q: quantile(values, q) for q in QUANTILES}


def hey(port):
    out = subprocess.run(REAL_TIME + ["hey", "-z", f"{SECONDS}s", "-c", "10", "-q", str(RATE // 10), f"http://127.0.0.1:{port}/"],
                         capture_output=True, text=True).stdout
    found = re.findall(r"^\s+(50|90|99)%+ in ([\d.]+) secs", out, re.M)
    return {float(key) / 100: float(value) * 1e3 for key, value in found}


def oha(port):
    out = subprocess.run(REAL_TIME + ["oha", "--no-tui", "--output-format", "json", "-z", f"{SECONDS}s", "-c", "10", "-q", str(RATE),
                         "--latency-correction", f"http://127.0.0.1:{port}/"], capture_output=True, text=True).stdout
    times = json.loads(out)["latencyPercentiles"]
    return {q: times[f"p{100 * q:g}"] * 1e3 for q in QUANTILES if times.get(f"p{100 * q:g}") is not None}


def k6(port):
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/load.js", "w") as file:
            file.write(K6 % (RATE, SECONDS, port))
        subprocess.run(REAL_TIME + ["k6", "run", "--quiet", "--no-usage-report", "--summary-trend-stats", "p(50),p(90),p(99),p(99.9)",
                        f"--summary-export={folder}/k6.json", f"{folder}/load.js"], capture_output=True)
        with open(f"{folder}/k6.json") as file:
            times = json.load(file)["metrics"]["http_req_duration"]
    return {q: times[f"p({100 * q:g})"] for q in QUANTILES}


def is_near(value, truth):
    return abs(value - truth) <= 0.1 * truth + WAY_MS


def main():
    peers = {name: run for name, run in (("wrk", wrk), ("h2load --rps", h2load), ("hey -q", hey),
                                     ("oha -q --latency-correction", oha), ("k6 constant-arrival-rate", k6))
             if name.split()[0] in PEERS and shutil.which(name.split()[0])}
    print("| server | generator | " + " | ".join(f"p{100 * q:g} right (numbers)" for q in QUANTILES) + " | p99, ms: truth, found | failed |")
    print("| --- | --- |" + " --: |" * (len(QUANTILES) + 2), flush=True)
    for name, script in SCRIPTS.items():
        right = {q: 0 for q in QUANTILES}
        numbers = {q: 0 for q in QUANTILES}
        seen, failures = [], []
        for _ in range(RUNS):
            with tempfile.TemporaryDirectory() as folder:
                server, port, rows = serve(script, folder)
                latency, bad = intact(port, folder)
                end(server)
                truth, bad_there = of_server(rows)
                for q in QUANTILES:
                    low, high = reading(latency, q)
                    right[q] += is_right(truth, q, low, high)
                    numbers[q] += low == high
                seen.append((quantile(truth, 0.99), *reading(latency, 0.99)))
                failures.append((bad_there, bad))
        middle = sorted(seen)[len(seen) // 2]
        cells = [f"{right[q]} of {RUNS} ({numbers[q]})" for q in QUANTILES]
        bad = sorted(failures)[len(failures) // 2]
        print(f"| {name} (`{script}`) | intact --rate | " + " | ".join(cells) +
              f" | {middle[0]:.1f}, {middle[1]:.1f} to {middle[2]:.1f} | {bad[1]} (server: {bad[0]}) |", flush=True)
        # what an open loop finds is the truth for the peers: a closed loop changes what the server sees
        reference = {q: quantile(truth, q) for q in QUANTILES}
        for peer, run in peers.items() if PEER_RUNS else ():
            right, found99 = {q: 0 for q in QUANTILES}, []
            known = set()
            for _ in range(PEER_RUNS):
                with tempfile.TemporaryDirectory() as folder:
                    server, port, _ = serve(script, folder, [] if peer == "wrk" else REAL_TIME)
                    found = run(port)
                    end(server)
                for q, value in found.items():
                    known.add(q)
                    right[q] += is_near(value, reference[q])
                found99.append(found.get(0.99, math.nan))
            cells = [f"{right[q]} of {PEER_RUNS}" if q in known else "not given" for q in QUANTILES]
            print(f"|  | {peer} | " + " | ".join(cells) +
                  f" | {reference[0.99]:.1f}, {sorted(found99)[len(found99) // 2]:.1f} |  |", flush=True)


if __name__ == "__main__":
    main()
