#!/usr/bin/env python3
"""Decodes the manifests of `intact fleet plan --for`, by what others publish of their formats.

    python3 -m venv /tmp/manifests && /tmp/manifests/bin/pip install botocore check-jsonschema
    /tmp/manifests/bin/python docs/internals/manifests.py target/debug/intact

batch: the parameters of the three calls, by botocore's model of the service, which knows every key. github: the workflow's JSON
Schema (SchemaStore, inside check-jsonschema). slurm: `sbatch --test-only`, if a cluster responds. kubernetes: `kubectl apply
--dry-run=server`, or the program that --kubernetes names: it gets the manifest on standard input and decodes it strictly, e.g.
by UnmarshalStrict of sigs.k8s.io/yaml into Job of k8s.io/api/batch/v1.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

PLAN = """# $(HOME) ${{ github.token }} it's "quoted" \\ END_OF_PLAN
name = "A_rig"
repetitions = 3
duration = "1s"
[limits]
requests = 100000
rate = 100
workers = 3
[[target]]
name = "own"
url = "http://127.0.0.1:9/"
headers = ["Authorization: Bearer {env:TOKEN}"]
i-own-this = "127.0.0.1"
[axes]
keepalive = ["on", "off"]
"""


def manifest(intact, plan, scheduler):
    words = [intact, "fleet", "plan", plan, "--for", scheduler, "--store", "s3://bucket/rig"]
    return subprocess.check_output(words, text=True)


def batch(text):
    import botocore.session
    from botocore.validate import ParamValidator

    # a call that needs no network: the model of the service comes with the package
    service = botocore.session.get_session().get_service_model("batch")
    calls = re.findall(r"^aws batch ([a-z-]+)( --job-queue \"[^\n]*?\")? --cli-input-json \"\$\(cat <<'JSON'\n(.*?)\nJSON\n\)\"$", text, re.S | re.M)
    assert [name for name, _, _ in calls] == ["create-consumable-resource", "register-job-definition", "submit-job"], calls
    for name, queue, document in calls:
        operation = service.operation_model("".join(part.title() for part in name.split("-")))
        document = json.loads(document)
        if queue:
            document["jobQueue"] = "queue"
        report = ParamValidator().validate(document, operation.input_shape)
        unknown = unknown_keys(document, operation.input_shape)
        assert not report.has_errors() and not unknown, (name, report.generate_report(), unknown)
        if name == "register-job-definition":
            assert document["containerProperties"]["environment"][0]["value"] == PLAN
    return "botocore's model"


def unknown_keys(value, shape):
    """Keys that the shape does not have: ParamValidator only sees those of its top level."""
    if shape.type_name == "structure":
        own = [key for key in value if key not in shape.members]
        return own + [key for name in value if name in shape.members for key in unknown_keys(value[name], shape.members[name])]
    if shape.type_name == "list":
        return [key for item in value for key in unknown_keys(item, shape.member)]
    return []


def github(path):
    words = [os.path.join(os.path.dirname(sys.executable), "check-jsonschema"), "--builtin-schema", "vendor.github-workflows", path]
    return subprocess.check_output(words, text=True).strip()


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("intact", help="the binary")
    options.add_argument("--kubernetes", default="kubectl apply --dry-run=server -f -", help="decodes the Job")
    given = options.parse_args()
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        plan = os.path.join(folder, "rig.toml")
        with open(plan, "w") as file:
            file.write(PLAN)
        for scheduler in ["batch", "github", "slurm", "kubernetes"]:
            text = manifest(given.intact, plan, scheduler)
            path = os.path.join(folder, scheduler + ".yaml")
            with open(path, "w") as file:
                file.write(text)
            try:
                if scheduler == "batch":
                    said = batch(text)
                elif scheduler == "github":
                    said = github(path)
                elif scheduler == "slurm":
                    done = subprocess.run(["sbatch", "--test-only", path], text=True, check=True, capture_output=True)
                    said = done.stderr.strip()
                else:
                    said = subprocess.check_output(given.kubernetes, shell=True, text=True, input=text).strip()
                print(f"{scheduler}: decoded: {said}")
            except (AssertionError, OSError, subprocess.CalledProcessError) as error:
                failed = True
                print(f"{scheduler}: NOT decoded: {error} {getattr(error, 'stderr', None) or getattr(error, 'output', None) or ''}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
