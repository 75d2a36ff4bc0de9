"""The programs of rows, some at a time: run.py SCRIPT fires|does-not RULE...; row N has its server at 127.1.N.1 and its client at
127.2.N.1."""

import concurrent.futures
import os
import subprocess
import sys

script, kind = sys.argv[1:3]
AT_ONCE = 3


def run(row):
    number, rule = row
    env = dict(os.environ, SERVER=f"127.1.{number}.1", CLIENT=f"127.2.{number}.1", NAME=f"row-{number}-1")
    done = subprocess.run([sys.executable, script, rule, kind], env=env, capture_output=True)
    return done.returncode and f"{rule} {kind}: {done.stderr.decode()}"


with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
    failed = [one for one in pool.map(run, enumerate(sys.argv[3:], 1)) if one]
sys.exit("\n".join(failed) or 0)
