#!/usr/bin/env python3
"""A seeded campaign of random faults: no outcome that the card of `watch --fault` did not name.

    cargo build -p intact && docs/internals/faults.py target/debug/intact
    docs/internals/faults.py target/debug/intact --count 1000 --seed 7

Each run draws a program (Python http.client, Node fetch, Node http2, Go net/http), HTTP or HTTPS, a kind, a seed of the fault, whether a
run without a fault goes before it, and how the program behaves: requests, pauses, methods, whether some requests are equal, whether it
repeats a failed request, whether it has a timeout. Then three sources are compared: what the program saw, what the
card states, and what the server's ledger holds. Ends with 1 if one of these differs in any run:

- requests of the run in the server's ledger, and `reached` of the card;
- requests that failed in the end for the program, and `failed` of the card;
- POSTs that the server's ledger holds twice, and `duplicated` of the card; where requests are equal, a program that repeats none;
- a body that the program took for complete and that was cut, and `truncated` of the card;
- the longest request of the program, where it is 1 s longer than the card's `hung_ms` and the first request, which none strikes.

`serve` listens on loopback at a free port. A run takes 1 to 5 s. The program's limit counts from its second request on: on a busy machine
its start takes longer.
"""

import argparse
import collections
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile

PYTHON = """
import http.client, json, ssl, sys, time
origin, prefix, plan = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
scheme, _, host = origin.partition("://")
if scheme == "https":
    context = ssl.create_default_context()
    connect = lambda: http.client.HTTPSConnection(host, context=context)
else:
    connect = lambda: http.client.HTTPConnection(host)
kept = connect()
for number, (method, pause) in enumerate(plan["requests"]):
    time.sleep(pause)
    begin, size = time.monotonic(), None
    for attempt in range(1 + plan["retries"]):
        kept.timeout = plan["timeout"] if number else None
        try:
            if kept.sock:
                kept.sock.settimeout(kept.timeout)
            kept.request(method, f"{prefix}/{min(number, plan['last'])}", body=b"x" * 40 if method == "POST" else None)
            size = len(kept.getresponse().read())
            break
        except http.client.IncompleteRead as error:
            kept.close()
            if plan["swallows"]:
                size = len(error.partial)
                break
        except (OSError, http.client.HTTPException):
            kept.close()
    print(json.dumps([method, size, time.monotonic() - begin]), flush=True)
"""

# what follows is the loop of both programs of Node
NODE = """
const [origin, prefix, plan] = [process.argv[1], process.argv[2], JSON.parse(process.argv[3])];
ASK
for (const [number, [method, pause]] of plan.requests.entries()) {
  await new Promise((done) => setTimeout(done, pause * 1000));
  const begin = performance.now();
  let size = null;
  for (let attempt = 0; attempt <= plan.retries && size === null; attempt++) {
    try {
      const limit = number ? plan.timeout : null;
      size = await ask(method, `${prefix}/${Math.min(number, plan.last)}`, method === 'POST' ? 'x'.repeat(40) : undefined, limit);
    } catch {}
  }
  console.log(JSON.stringify([method, size, (performance.now() - begin) / 1000]));
}
process.exit(0);
"""
FETCH = """
async function ask(method, path, body, limit) {
  const signal = limit === null ? undefined : AbortSignal.timeout(limit * 1000);
  const response = await fetch(origin + path, { method, body, signal });
  return (await response.arrayBuffer()).byteLength;
}
"""
HTTP2 = """
import http2 from 'node:http2';
let kept = null;
function open() {
  const session = http2.connect(origin);
  const forget = () => { if (kept === session) kept = null; };
  return session.on('error', forget).on('goaway', forget).on('close', forget);
}
function ask(method, path, body, limit) {
  return new Promise((done, fail) => {
    const session = kept ??= open();
    const stream = session.request({ ':method': method, ':path': path });
    const timer = limit === null ? null : setTimeout(() => { kept = null; session.destroy(new Error('timeout')); }, limit * 1000);
    let [size, ended] = [0, false];
    stream.on('data', (part) => { size += part.length; }).on('end', () => { ended = true; }).on('error', () => {});
    stream.on('close', () => {
      clearTimeout(timer);
      ended && stream.rstCode === 0 && !stream.aborted ? done(size) : fail(new Error('cut'));
    });
    stream.end(body);
  });
}
"""
GO = """
package main

import ("bytes"; "encoding/json"; "fmt"; "io"; "net/http"; "os"; "time")

type plan struct {
	Requests [][2]any
	Retries  int
	Timeout  *float64
	Swallows bool
	Last     int
}

func main() {
	var given plan
	if err := json.Unmarshal([]byte(os.Args[3]), &given); err != nil { panic(err) }
	client := &http.Client{}
	for number, one := range given.Requests {
		method := one[0].(string)
		if number > 0 && given.Timeout != nil { client.Timeout = time.Duration(*given.Timeout * float64(time.Second)) }
		time.Sleep(time.Duration(one[1].(float64) * float64(time.Second)))
		begin := time.Now()
		var size *int
		for attempt := 0; attempt <= given.Retries && size == nil; attempt++ {
			var body io.Reader
			if method == "POST" { body = bytes.NewReader(bytes.Repeat([]byte("x"), 40)) }
			request, _ := http.NewRequest(method, fmt.Sprintf("%s%s/%d", os.Args[1], os.Args[2], min(number, given.Last)), body)
			response, err := client.Do(request)
			if err != nil { continue }
			read, err := io.ReadAll(response.Body)
			response.Body.Close()
			if count := len(read); err == nil || (given.Swallows && err == io.ErrUnexpectedEOF) { size = &count }
		}
		line, _ := json.Marshal([]any{method, size, time.Since(begin).Seconds()})
		fmt.Println(string(line))
	}
}
"""

NODE_WORDS = ["node", "--input-type=module", "-e"]
PROGRAMS = {
    "python": ["python3", "-c", PYTHON],
    "fetch": [*NODE_WORDS, NODE.replace("ASK", FETCH), "--"],
    "http2": [*NODE_WORDS, NODE.replace("ASK", HTTP2), "--"],
}
# program and scheme; Go speaks HTTP/2 over TLS
MIXED = [("python", "http"), ("python", "https"), ("fetch", "http"), ("fetch", "https"), ("http2", "https"), ("go", "http"), ("go", "https")]
KINDS = [
    "stale", "fin-race", "rst", "reset-mid-response", "early-close-after-headers", "nat-idle=80ms", "black-hole", "goaway",
    "max-age=150ms", "slow-close", "drain",
]
BODY = 100
# seconds until a program gives up, and until the relay does
LIMIT, WAIT = 2, "3s"


def draw(chance):
    """One run: the program, the options of `watch`, how the program behaves."""
    count = chance.randint(2, 6)
    plan = {
        "requests": [(chance.choice(["GET", "POST"]), chance.choice([0, 0.12, 0.2])) for _ in range(count)],
        "retries": chance.choice([0, 0, 1]),
        "timeout": chance.choice([None, LIMIT]),
        "swallows": chance.random() < 0.2,
        # all requests from this one on have the same target
        "last": chance.choice([count, count, 1]),
    }
    kind = chance.choice(["", "none,"]) + chance.choice(KINDS)
    options = ["--fault", kind, "--fault-seed", str(chance.choice([0, chance.randint(1, 99)])), "--show-output"]
    return chance.choice(MIXED), options, plan


def run(intact, server, folder, number, one):
    """What the program saw, the card, and the program's exit code."""
    (program, scheme), options, plan = one
    path = os.path.join(folder, f"card-{number}.json")
    words = [intact, "watch", "-q", f"--json={path}", "--fault-wait", WAIT, *options, "--", *PROGRAMS[program]]
    words += [server[scheme], f"/run-{number}", json.dumps(plan)]
    trust = {name: server["ca"] for name in ("SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS")}
    out = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, env=os.environ | trust)
    if not os.path.exists(path):
        sys.exit(f"run {number}: no card: {out.stderr}")
    seen = [json.loads(line) for line in out.stdout.splitlines()]
    if is_compared(options):
        # the run without a fault came first
        seen = seen[len(plan["requests"]):]
    with open(path) as card:
        return seen, json.load(card), out.returncode


def is_compared(options):
    return options[1].startswith("none,")


def bounds(cell, name):
    """The smallest and the largest value of a figure of a cell; none was affected where the fault was not applied."""
    if cell[name] is not None:
        return cell[name], cell[name]
    if cell["not_applied"]:
        return 0, 0
    known = cell["bounds"][name]
    return known.get("low", 0), known.get("high", float("inf"))


def differences(one, seen, card, status, served):
    """What the sources do not agree on."""
    (program, _), options, plan = one
    cells = card["cells"]
    if is_compared(options):
        prefix = next(iter(served))[1].rsplit("/", 1)[0]
        sent = ((method, f"{prefix}/{min(number, plan['last'])}") for number, (method, _) in enumerate(plan["requests"]))
        served = served - collections.Counter(sent)

    def between(name, value):
        least, most = map(sum, zip(*(bounds(cell, name) for cell in cells)))
        if not least <= value <= most:
            yield f"{name}: the card has {least} to {most}, and it was {value}"

    if status != 0 or len(seen) != len(plan["requests"]):
        yield f"the program ended with {status} after {len(seen)} requests"
    yield from between("reached", sum(served.values()))
    if any(cell["not_applied"] in ("no-further-request", "not-used") for cell in cells):
        # the card claims nothing
        return
    yield from between("failed", sum(size is None for _, size, _ in seen) + sum(size not in (None, BODY) for _, size, _ in seen))
    is_equal = plan["last"] < len(plan["requests"])
    if not is_equal:
        yield from between("duplicated", sum(count - 1 for (method, _), count in served.items() if method == "POST"))
    elif program == "python" and not plan["retries"]:
        yield from between("duplicated", 0)
    cut = sum(size not in (None, BODY) for _, size, _ in seen)
    if cut > sum(bounds(cell, "truncated")[1] for cell in cells):
        yield f"truncated: the program took {cut} cut bodies for complete"
    first, longest = seen[0][2], max(seconds for _, _, seconds in seen)
    if longest > 1 + first + max(bounds(cell, "hung_ms")[0] for cell in cells) / 1000:
        yield f"hung: a request of the program took {longest:.3f} s"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("intact")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="repeat from this run on")
    given = parser.parse_args()
    chance = random.Random(given.seed)
    with tempfile.TemporaryDirectory() as folder:
        ledger, ca = os.path.join(folder, "server"), os.path.join(folder, "ca.pem")
        words = [given.intact, "serve", "--listen", "127.0.0.1:0", "--tls-listen", "127.0.0.1:0", "--body", str(BODY)]
        child = subprocess.Popen([*words, "--ledger", ledger, "--write-ca", ca], stdout=subprocess.PIPE, text=True)
        server = {"ca": ca}
        while len(server) < 3:
            found = re.search(r"^(https?)(://[^/]+)", child.stdout.readline())
            server[found[1]] = found[0]
        with open(os.path.join(folder, "client.go"), "w") as source:
            source.write(GO)
        PROGRAMS["go"] = [os.path.join(folder, "client")]
        subprocess.run(["go", "build", "-o", PROGRAMS["go"][0], source.name], check=True)
        runs = []
        for number in range(given.first + given.count):
            one = draw(chance)
            if number >= given.first:
                runs.append((number, one, *run(given.intact, server, folder, number, one)))
        child.send_signal(signal.SIGTERM)
        child.wait()
        served = collections.defaultdict(collections.Counter)
        rows = subprocess.run(["zstd", "-dcq", os.path.join(ledger, "events.jsonl.zst")], capture_output=True, text=True, check=True)
        for row in map(json.loads, rows.stdout.splitlines()):
            if row["event"] == "exchange":
                served[row["target"].split("/")[1]][row["method"], row["target"]] += 1
    outcomes, wrong = collections.Counter(), 0
    for number, one, seen, card, status in runs:
        (program, scheme), options, plan = one
        for cell in card["cells"]:
            outcomes[cell["kind"], cell["outcome"]] += 1
        for difference in differences(one, seen, card, status, served[f"run-{number}"]):
            wrong += 1
            print(f"run {number}: {program} {scheme} {' '.join(options)} {json.dumps(plan)}\n  {difference}\n  {seen}")
    for (kind, outcome), count in sorted(outcomes.items()):
        print(f"{count:5}  {kind:26} {outcome}")
    print(f"{len(runs)} runs, seed {given.seed}: {wrong} differences")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
