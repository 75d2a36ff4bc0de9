#!/usr/bin/env python3
"""A seeded campaign of random faults: no outcome that the card of `watch --fault` did not name.

    cargo build -p intact && docs/internals/faults.py target/debug/intact
    docs/internals/faults.py target/debug/intact --count 1000 --seed 7

Each run draws a program (Python http.client, Node fetch), a kind, a seed of the fault and how the program behaves: requests, pauses,
methods, whether it repeats a failed request, whether it has a timeout. Then three sources are compared: what the program saw, what the
card states, and what the server's ledger holds. Ends with 1 if one of these differs in any run:

- requests of the run in the server's ledger, and `reached` of the card;
- requests that failed in the end for the program, and `failed` of the card;
- POSTs that the server's ledger holds twice, and `duplicated` of the card;
- a body that the program took for complete and that was cut, and `truncated` of the card;
- the longest request of the program, where it is 1 s longer than the card's `hung_ms`.

`serve` listens on loopback at a free port. A run takes 1 to 3 s.
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
import http.client, json, sys, time
port, prefix, plan = int(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3])
connect = lambda: http.client.HTTPConnection("127.0.0.1", port, timeout=plan["timeout"])
kept = connect()
for number, (method, pause) in enumerate(plan["requests"]):
    time.sleep(pause)
    begin, size = time.monotonic(), None
    for attempt in range(1 + plan["retries"]):
        try:
            kept.request(method, f"{prefix}/{number}", body=b"x" * 40 if method == "POST" else None)
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

NODE = """
const [port, prefix, plan] = [process.argv[1], process.argv[2], JSON.parse(process.argv[3])];
for (const [number, [method, pause]] of plan.requests.entries()) {
  await new Promise((done) => setTimeout(done, pause * 1000));
  const begin = performance.now();
  let size = null;
  for (let attempt = 0; attempt <= plan.retries && size === null; attempt++) {
    const signal = plan.timeout === null ? undefined : AbortSignal.timeout(plan.timeout * 1000);
    const body = method === 'POST' ? 'x'.repeat(40) : undefined;
    try {
      const response = await fetch(`http://127.0.0.1:${port}${prefix}/${number}`, { method, body, signal });
      size = (await response.arrayBuffer()).byteLength;
    } catch {}
  }
  console.log(JSON.stringify([method, size, (performance.now() - begin) / 1000]));
}
"""

PROGRAMS = {
    "python": ["python3", "-c", PYTHON],
    "node": ["node", "--input-type=module", "-e", NODE],
}
KINDS = [
    "stale", "fin-race", "rst", "reset-mid-response", "early-close-after-headers", "nat-idle=80ms", "black-hole", "goaway",
    "max-age=150ms", "slow-close", "drain",
]
BODY = 100


def draw(chance):
    """One run: the program, the options of `watch`, how the program behaves."""
    count = chance.randint(2, 6)
    plan = {
        "requests": [(chance.choice(["GET", "POST"]), chance.choice([0, 0.12, 0.2])) for _ in range(count)],
        "retries": chance.choice([0, 0, 1]),
        "timeout": chance.choice([None, 0.9]),
        "swallows": chance.random() < 0.2,
    }
    options = ["--fault", chance.choice(KINDS), "--fault-seed", str(chance.choice([0, chance.randint(1, 99)]))]
    return chance.choice(sorted(PROGRAMS)), options, plan


def run(intact, port, folder, number, one):
    """What the program saw, the card, and what was run."""
    program, options, plan = one
    path = os.path.join(folder, f"card-{number}.json")
    words = [intact, "watch", "-q", f"--json={path}", "--fault-wait", "1500ms", *options, "--", *PROGRAMS[program]]
    if program == "node":
        words.append("--")
    words += [port, f"/run-{number}", json.dumps(plan)]
    out = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
    if not os.path.exists(path):
        sys.exit(f"run {number}: no card: {out.stderr}")
    with open(path) as card:
        return [json.loads(line) for line in out.stdout.splitlines()], json.load(card), out.returncode


def differences(seen, card, status, plan, served):
    """What the sources do not agree on."""
    cells = card["cells"]

    def between(name, value):
        least, most = (sum(cell[name][bound] for cell in cells) for bound in ("least", "most"))
        if not least <= value <= most:
            yield f"{name}: the card has {least} to {most}, and it was {value}"

    if status != 0 or len(seen) != len(plan["requests"]):
        yield f"the program ended with {status} after {len(seen)} requests"
    yield from between("reached", sum(served.values()))
    if any(cell["not_applied"] in ("no-further-request", "not-used") for cell in cells):
        # the card claims nothing
        return
    yield from between("failed", sum(size is None for _, size, _ in seen) + sum(size not in (None, BODY) for _, size, _ in seen))
    yield from between("duplicated", sum(count - 1 for (method, _), count in served.items() if method == "POST"))
    cut = sum(size not in (None, BODY) for _, size, _ in seen)
    if cut > sum(cell["truncated"]["most"] for cell in cells):
        yield f"truncated: the program took {cut} cut bodies for complete"
    longest = max(seconds for _, _, seconds in seen)
    if longest > 1 + max(cell["hung_ms"] or 0 for cell in cells) / 1000:
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
        ledger = os.path.join(folder, "server")
        words = [given.intact, "serve", "--listen", "127.0.0.1:0", "--tls-listen", "127.0.0.1:0", "--body", str(BODY)]
        server = subprocess.Popen([*words, "--ledger", ledger], stdout=subprocess.PIPE, text=True)
        port = re.search(r"http://127\.0\.0\.1:(\d+)/", server.stdout.readline()).group(1)
        runs = []
        for number in range(given.first + given.count):
            one = draw(chance)
            if number >= given.first:
                runs.append((number, one, *run(given.intact, port, folder, number, one)))
        server.send_signal(signal.SIGTERM)
        server.wait()
        served = collections.defaultdict(collections.Counter)
        rows = subprocess.run(["zstd", "-dcq", os.path.join(ledger, "events.jsonl.zst")], capture_output=True, text=True, check=True)
        for row in map(json.loads, rows.stdout.splitlines()):
            if row["event"] == "exchange":
                served[row["target"].split("/")[1]][row["method"], row["target"]] += 1
    outcomes, wrong = collections.Counter(), 0
    for number, (program, options, plan), seen, card, status in runs:
        for cell in card["cells"]:
            outcomes[cell["kind"], cell["outcome"]] += 1
        for difference in differences(seen, card, status, plan, served[f"run-{number}"]):
            wrong += 1
            print(f"run {number}: {program} {' '.join(options)} {json.dumps(plan)}\n  {difference}\n  {seen}")
    for (kind, outcome), count in sorted(outcomes.items()):
        print(f"{count:5}  {kind:26} {outcome}")
    print(f"{len(runs)} runs, seed {given.seed}: {wrong} differences")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
