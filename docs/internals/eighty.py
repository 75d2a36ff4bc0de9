"""An open loop at 80 % of a real server's capacity, next to the open loops of other generators, in interleaved rounds.

    python3 docs/internals/eighty.py INTACT nginx|node [ROUNDS [SECONDS]]

The server has core 1, the generator core 0; loopback, HTTP/1.1, 64 kept connections. The capacity is the lower end that
`intact bench --find-max` finds. The p50 and p99 are what each generator prints (h2load: of its log): from the due moment for intact
and oha, from the start of the request for h2load and k6. The CPU time is that of the generator's process (wait4), user and system,
its start included. Generators that are not installed are named and left out. The order turns round in each second round.
"""

import json, os, re, shutil, statistics, subprocess, sys, tempfile, time

INTACT, SERVER = sys.argv[1:3]
ROUNDS = int(sys.argv[3]) if len(sys.argv) > 3 else 5
SECONDS = int(sys.argv[4]) if len(sys.argv) > 4 else 10
CONNECTIONS = 64
URL = "http://127.0.0.1:18680/"
NGINX = """daemon off; worker_processes 1; pid %(folder)s/pid; error_log %(folder)s/error.log crit; %(user)s
events { worker_connections 4096; }
http { access_log off; keepalive_requests 1000000000; keepalive_timeout 600s; client_body_temp_path %(folder)s/1;
 proxy_temp_path %(folder)s/2; fastcgi_temp_path %(folder)s/3; uwsgi_temp_path %(folder)s/4; scgi_temp_path %(folder)s/5;
 server { listen 127.0.0.1:18680 backlog=4096; location / { return 200 "%(body)s"; } } }"""
NODE = "require('http').createServer((_, response) => response.end('x'.repeat(100))).listen(18680, '127.0.0.1');"
K6 = """import http from 'k6/http';
export const options = { scenarios: { one: { executor: 'constant-arrival-rate', rate: %d, timeUnit: '1s', duration: '%ds',
 preAllocatedVUs: %d, maxVUs: %d } } };
export default function () { http.get('%s'); }"""


def start(folder):
    if SERVER == "nginx":
        with open(f"{folder}/nginx.conf", "w") as file:
            file.write(NGINX % {"folder": folder, "body": "x" * 100, "user": "user root;" if os.getuid() == 0 else ""})
        words = ["nginx", "-p", folder, "-c", f"{folder}/nginx.conf"]
    else:
        words = ["node", "-e", NODE]
    server = subprocess.Popen(["taskset", "-c", "1", *words], stderr=subprocess.DEVNULL)
    time.sleep(1)
    return server


def run(words):
    """Its output, and its CPU time in seconds."""
    child = subprocess.Popen(["taskset", "-c", "0", *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    out = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    return out, usage.ru_utime + usage.ru_stime


def quantile(values, q):
    return values[min(len(values) - 1, int(q * len(values)))]


# each gives: requests, p50 and p99 in ms, what was not sent or failed, CPU seconds, and the scheduling error (p50, p99) in ms


def intact(rate, _):
    out, cpu = run([INTACT, "bench", URL, "--rate", f"{rate}/s", "-z", f"{SECONDS}s", "--rounds", "1", "--keepalive", "on",
                    "-c", str(CONNECTIONS), "--threads", "1", "--json"])
    one = json.loads(out)["variants"][0]
    late = one["open_loop"]["scheduling_error_ms"]
    total = one["requests"]["total"]
    return total, one["latency_ms"]["p50"], one["latency_ms"]["p99"], rate * SECONDS - one["requests"]["ok"], cpu, (late["p50"], late["p99"])


def oha(rate, _):
    out, cpu = run(["oha", "--no-tui", "--output-format", "json", "-z", f"{SECONDS}s", "-q", str(rate), "--latency-correction",
                    "-c", str(CONNECTIONS), URL])
    found = json.loads(out)
    count = sum(found["statusCodeDistribution"].values())
    times = found["latencyPercentiles"]
    return count, times["p50"] * 1e3, times["p99"] * 1e3, rate * SECONDS - count, cpu, None


def h2load(rate, folder):
    log = f"{folder}/h2load.log"
    _, cpu = run(["h2load", "--h1", "-t1", f"-c{CONNECTIONS}", f"--rps={rate / CONNECTIONS}", f"-D{SECONDS}", f"--log-file={log}", URL])
    with open(log) as file:
        # start, status, duration (us)
        times = sorted(int(line.split()[2]) / 1e3 for line in file if line.split()[1] == "200")
    os.unlink(log)
    return len(times), quantile(times, 0.5), quantile(times, 0.99), rate * SECONDS - len(times), cpu, None


def k6(rate, folder):
    with open(f"{folder}/load.js", "w") as file:
        file.write(K6 % (rate, SECONDS, CONNECTIONS, CONNECTIONS, URL))
    _, cpu = run(["k6", "run", "--quiet", "--no-usage-report", "--summary-trend-stats", "med,p(99)",
                  f"--summary-export={folder}/k6.json", f"{folder}/load.js"])
    with open(f"{folder}/k6.json") as file:
        metrics = json.load(file)["metrics"]
    count, times = metrics["http_reqs"]["count"], metrics["http_req_duration"]
    return count, times["med"], times["p(99)"], rate * SECONDS - count, cpu, None


def capacity():
    out, _ = run([INTACT, "bench", URL, "--find-max", "p99 < 20ms", "--keepalive", "on", "-c", str(CONNECTIONS), "--threads", "1",
                  "--step", "1s", "-z", "45s", "--max-rate", "200000/s", "--json"])
    found = json.loads(out)
    print("; ".join(found["verdict"]))
    return found["variants"][0]["capacity_per_s"]["low"]


def main():
    all_clients = {"intact --rate": intact, "oha -q --latency-correction": oha, "h2load --rps": h2load, "k6 constant-arrival-rate": k6}
    clients = {name: one for name, one in all_clients.items() if name.startswith("intact") or shutil.which(name.split()[0])}
    print("left out:", ", ".join(set(all_clients) - set(clients)) or "none")
    with tempfile.TemporaryDirectory() as folder:
        server = start(folder)
        try:
            rate = int(capacity() * 0.8)
            rows, loads = {name: [] for name in clients}, []
            for turn in range(ROUNDS):
                loads.append(os.getloadavg()[0])
                for name in list(clients) if turn % 2 == 0 else list(clients)[::-1]:
                    rows[name].append(clients[name](rate, folder))
                    time.sleep(0.5)
        finally:
            server.terminate()
            server.wait()
    print(f"{SERVER}: {rate}/s for {SECONDS} s, {ROUNDS} rounds; load average {min(loads):.2f} to {max(loads):.2f}\n")
    print("| generator | sent, req/s | p50, ms | p99, ms (lowest to highest) | late p50 / p99, ms | client CPU, µs/request | due, not completed |")
    print("| --- | --: | --: | --: | --: | --: | --: |")
    for name, each in rows.items():
        middle = lambda of: statistics.median(map(of, each))
        p99 = [row[2] for row in each]
        late = "not given"
        if each[0][5]:
            late = f"{middle(lambda row: row[5][0]):.3f} / {middle(lambda row: row[5][1]):.3f}"
        print(f"| {name} | {middle(lambda row: row[0]) / SECONDS:,.0f} | {middle(lambda row: row[1]):.2f} | {middle(lambda row: row[2]):.2f} "
              f"({min(p99):.2f} to {max(p99):.2f}) | {late} | {middle(lambda row: row[4] / row[0] * 1e6):.1f} | "
              f"{middle(lambda row: row[3] / (rate * SECONDS)) * 100:.2f} % |", flush=True)


if __name__ == "__main__":
    main()
