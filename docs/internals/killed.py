#!/usr/bin/env python3
"""A campaign whose workers are killed at random (kill -9), and what the report makes of it.

    cargo build -p intact --features aws
    python3 -m venv /tmp/moto && /tmp/moto/bin/pip install 'moto[server]'
    /tmp/moto/bin/python docs/internals/killed.py target/debug/intact              # SQS and S3: moto_server, started here
    /tmp/moto/bin/python docs/internals/killed.py target/debug/intact --sqs http://127.0.0.1:9324 --s3 http://127.0.0.1:9000
    python3 docs/internals/killed.py target/debug/intact --embedded                # SQLite and a folder

Sends load to an `intact serve` of its own on loopback. Checks that every message has ended exactly once: planned = finished,
none missing or dead, and the report counts what the first result of each message counts and no more. Prints one line, and
ends with 1 where that does not hold. SQS returns what a killed worker had after slice + 60 s: it takes some minutes.
"""

import argparse
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


def make_queues(sqs):
    """A queue with a redrive policy, its dead letters, as deploy/template.yaml has them."""
    dead = sqs.create_queue(QueueName="killed-dead")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=dead, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    redrive = json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": "20"})
    sqs.create_queue(QueueName="killed", Attributes={"RedrivePolicy": redrive, "VisibilityTimeout": "60"})


def kill_workers(campaign):
    """Kills one of its workers after the other; how many it were."""
    children = f"/proc/{campaign.pid}/task/{campaign.pid}/children"
    killed = 0
    while campaign.poll() is None:
        time.sleep(random.uniform(0.3, 2.0))
        try:
            with open(children) as file:
                workers = [int(word) for word in file.read().split()]
            if workers:
                os.kill(random.choice(workers), signal.SIGKILL)
                killed += 1
        except (FileNotFoundError, ProcessLookupError):
            pass
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
    options.add_argument("intact", help="the binary; with --features aws unless --embedded")
    options.add_argument("--messages", type=int, default=1000)
    options.add_argument("--sqs", help="the endpoint of a local SQS [default: moto_server]")
    options.add_argument("--s3", help="the endpoint of a local S3 [default: moto_server]")
    options.add_argument("--embedded", action="store_true", help="SQLite and a folder instead")
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
    words = [given.intact, "fleet", "run", plan, "--json", "--dir", os.path.join(folder, "dir")]
    environment = dict(os.environ)
    if not given.embedded:
        import boto3

        moto = f"http://127.0.0.1:{free_port()}"
        if not (given.sqs and given.s3):
            at = moto.rsplit(":", 1)[1]
            server = os.path.join(os.path.dirname(sys.executable), "moto_server")
            start(children, [server, "-p", at], int(at))
        sqs_at, s3_at = given.sqs or moto, given.s3 or moto
        keys = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "testtest", "AWS_REGION": "us-east-1"}
        for key, value in keys.items():
            environment.setdefault(key, value)
        environment |= {"AWS_ENDPOINT_URL_SQS": sqs_at, "AWS_ENDPOINT": s3_at, "AWS_ALLOW_HTTP": "true"}
        session = boto3.Session(environment["AWS_ACCESS_KEY_ID"], environment["AWS_SECRET_ACCESS_KEY"], region_name="us-east-1")
        make_queues(session.client("sqs", endpoint_url=sqs_at))
        s3 = session.client("s3", endpoint_url=s3_at)
        s3.create_bucket(Bucket="killed")
        words += ["--queue", "sqs://killed", "--store", "s3://killed/rig"]
    began = time.monotonic()
    errors = os.path.join(folder, "errors")
    with open(errors, "w") as file:
        campaign = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=file, env=environment)
        # a document that outgrows the pipe has to be read while the workers are killed
        told = []
        reader = threading.Thread(target=lambda: told.append(campaign.stdout.read()))
        reader.start()
        killed = kill_workers(campaign)
        reader.join()
    seconds = time.monotonic() - began
    if campaign.returncode != 0:
        with open(errors) as file:
            sys.stderr.write(file.read()[-2000:])
        return 1
    report = json.loads(told[0])
    if given.embedded:
        found = [os.path.join(at, name) for at, _, names in os.walk(os.path.join(folder, "dir/store/results")) for name in names]
        first, results = first_results(found, lambda key: open(key).read())
    else:
        pages = s3.get_paginator("list_objects_v2").paginate(Bucket="killed", Prefix="rig/results/")
        found = [one["Key"] for page in pages for one in page.get("Contents", [])]
        first, results = first_results(found, lambda key: s3.get_object(Bucket="killed", Key=key)["Body"].read())
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
