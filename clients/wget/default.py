# a process per URL
LINE = """
# snippet
wget URL
# end
"""
COMMAND = [word for word in LINE.splitlines()[2].split() if word != "URL"]

import os
import subprocess

VERSION = subprocess.run(["wget", "--version"], capture_output=True, text=True).stdout.split()[2]
VERSIONS = {"wget": VERSION}
NO_PAUSE = True


def request(method, url, body):
    words = COMMAND + ["-q", "-O", "/dev/null", "--server-response", "--content-on-error", url]
    words += ["--ca-certificate", os.environ.get("INTACT_CA", "")]
    if body:
        words += ["--post-data", body.decode()]
    return statuses(subprocess.run(words, capture_output=True, text=True))[-1]


def statuses(done):
    lines = [line.split() for line in done.stderr.splitlines()]
    codes = [int(words[1]) for words in lines if words and words[0].startswith("HTTP/")]
    return codes or [f"exit {done.returncode}"]
