#!/usr/bin/env python3
"""A campaign whose workers are killed at random (kill -9), and what the report makes of it.

    python3 docs/internals/killed.py target/debug/intact              # `fleet run`, a folder
    python3 docs/internals/killed.py target/debug/intact --jobs       # `fleet work` per index, as a scheduler starts and repeats it
    python3 -m venv /tmp/moto && /tmp/moto/bin/pip install 'moto[server]'
    /tmp/moto/bin/python docs/internals/killed.py target/debug/intact --jobs --s3        # results in S3: moto_server, started here

Sends load to an `intact serve` of its own on loopback. Checks that every message has ended exactly once: planned = finished,
none missing or dead, and the report counts what the first result of each message counts and no more. With --jobs, 5 % of the
indices run once more after they had a result, which must change nothing. Prints one line, and ends with 1 where that does not
hold.
"""

import argparse
import concurrent.futures
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

PLAN = """name = "killed"
repetitions = {repetitions}
duration = "20ms"
[limits]
requests = 2000000
rate = 400
workers = 4
deliveries = 20
[[target]]
name = "own"
url = "http://127.0.0.1:{port}/"
i-own-this = "127.0.0.1"
[axes]
keepalive = ["on", "off"]
"""
TRIES = 20


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(port):
    until = time.monotonic() + 60
    while time.monotonic() < until:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.1)
    sys.exit(f"nothing listens on port {port}")


def start(children, words, port):
    children.append(subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
    wait_for(port)


def run_campaign(intact, plan, store, environment):
    """`fleet run`, one of whose workers is killed every now and then; how many were."""
    campaign = subprocess.Popen(
        [intact, "fleet", "run", plan, "--store", store, "--json"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environment,
    )
    children = f"/proc/{campaign.pid}/task/{campaign.pid}/children"
    killed = 0
    while campaign.poll() is None:
        time.sleep(random.uniform(0.05, 0.5))
        try:
            with open(children) as file:
                workers = [int(word) for word in file.read().split()]
            if workers:
                os.kill(random.choice(workers), signal.SIGKILL)
                killed += 1
        except (FileNotFoundError, ProcessLookupError):
            pass
    if campaign.returncode != 0:
        sys.exit(f"fleet run ended with {campaign.returncode}")
    return killed


def run_jobs(intact, plan, store, environment, messages):
    """A process per index, four at once; a tenth is killed at a random time and repeated. How many were killed."""
    killed = 0
    lock = threading.Lock()

    def job(index):
        nonlocal killed
        for _ in range(TRIES):
            process = subprocess.Popen(
                [intact, "fleet", "work", plan, "--store", store],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=environment | {"JOB_COMPLETION_INDEX": str(index)},
            )
            if random.random() < 0.1:
                time.sleep(random.uniform(0, 0.15))
                process.kill()
            if process.wait() == 0:
                return
            with lock:
                killed += 1
        sys.exit(f"index {index}: no success in {TRIES} tries")

    indices = list(range(messages))
    with concurrent.futures.ThreadPoolExecutor(4) as jobs:
        list(jobs.map(job, indices))
        list(jobs.map(job, random.sample(indices, messages // 20)))
    return killed


def first_results(keys, read):
    """The first result of each message, and how many there are of all."""
    first = {}
    keys = [key for key in sorted(keys) if key.endswith(".json")]
    for key in keys:
        first.setdefault(key.rsplit("/", 1)[0], key)
    return [json.loads(read(key)) for key in first.values()], len(keys)


def measured(result):
    """Requests of a result that a report counts: not the preflight, no warm-up."""
    return sum(
        group["latency"]["count"]
        for cell in result["tally"]["cells"]
        if cell["round"] != 0
        for group in cell["groups"]
        if not group["warmup"]
    )


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("intact", help="the binary")
    options.add_argument("--messages", type=int, default=1000)
    options.add_argument("--jobs", action="store_true", help="a job per index instead of `fleet run`")
    options.add_argument("--s3", action="store_true", help="S3 of moto instead of a folder")
    options.add_argument("--seed", type=int, default=1)
    given = options.parse_args()
    random.seed(given.seed)
    children = []
    with tempfile.TemporaryDirectory() as folder:
        try:
            sys.exit(run(given, folder, children))
        finally:
            for child in children:
                child.kill()
                child.wait()


def run(given, folder, children):
    port = free_port()
    start(children, [given.intact, "serve", "--listen", f"127.0.0.1:{port}", "--tls-listen", f"127.0.0.1:{free_port()}"], port)
    plan = os.path.join(folder, "plan.toml")
    with open(plan, "w") as file:
        file.write(PLAN.format(repetitions=given.messages // 2, port=port))
    environment = dict(os.environ)
    store = os.path.join(folder, "store")
    if given.s3:
        import boto3

        at = free_port()
        server = os.path.join(os.path.dirname(sys.executable), "moto_server")
        start(children, [server, "-p", str(at)], at)
        environment |= {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "testtest", "AWS_REGION": "us-east-1"}
        environment |= {"AWS_ENDPOINT": f"http://127.0.0.1:{at}", "AWS_ALLOW_HTTP": "true"}
        s3 = boto3.client("s3", "us-east-1", endpoint_url=environment["AWS_ENDPOINT"], aws_access_key_id="test", aws_secret_access_key="testtest")
        s3.create_bucket(Bucket="killed")
        store = "s3://killed/rig"
    began = time.monotonic()
    if given.jobs:
        killed = run_jobs(given.intact, plan, store, environment, given.messages)
    else:
        killed = run_campaign(given.intact, plan, store, environment)
    seconds = time.monotonic() - began
    report = json.loads(subprocess.check_output([given.intact, "fleet", "report", store, "--json"], env=environment, stderr=subprocess.DEVNULL))
    if given.s3:
        pages = s3.get_paginator("list_objects_v2").paginate(Bucket="killed", Prefix="rig/results/")
        found = [one["Key"] for page in pages for one in page.get("Contents", [])]
        first, results = first_results(found, lambda key: s3.get_object(Bucket="killed", Key=key)["Body"].read())
    else:
        found = [os.path.join(at, name) for at, _, names in os.walk(os.path.join(store, "results")) for name in names]
        first, results = first_results(found, lambda key: open(key).read())
    messages = report["messages"]
    counted = report["groups"][0]["bench"]["requests"]["total"]
    in_store = sum(measured(result) for result in first)
    print(
        f"{killed} workers killed in {seconds:.0f} s: {messages['finished']} of {messages['planned']} finished, "
        f"{messages['missing']} missing, {len(messages['dead'])} dead, {messages['duplicates']} duplicates not counted; "
        f"{len(first)} messages with {results} results in the store; requests: {counted} in the report, {in_store} in first results; "
        f"highest attempt {max(result['attempt'] for result in first)}"
    )
    once = messages["finished"] == messages["planned"] == len(first) and results == len(first) + messages["duplicates"]
    none_lost = messages["missing"] == 0 and not messages["dead"] and counted == in_store
    return 0 if once and none_lost else 1


if __name__ == "__main__":
    main()
