# one process for all URLs
LINE = """
# snippet
curl --http1.1 URL URL URL
# end
"""
COMMAND = [word for word in LINE.splitlines()[2].split() if word != "URL"]

import subprocess

VERSION = subprocess.run(["curl", "--version"], capture_output=True, text=True).stdout.split()[1]
VERSIONS = {"curl": VERSION}
NO_PAUSE = True


def batch(count, at_once, method, url):
    words = COMMAND + ["-s", "-w", "%{http_code}\n"]
    if at_once:
        words += ["--parallel", "--parallel-immediate", "--parallel-max", "10"]
    for _ in range(count):
        words += ["-o", "/dev/null", url]
    if method == "POST":
        words += ["--data", "ping"]
    done = subprocess.run(words, capture_output=True, text=True)
    codes = [int(line) for line in done.stdout.split()]
    return [code or f"exit {done.returncode}" for code in codes]
