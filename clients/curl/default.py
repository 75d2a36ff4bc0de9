# a process per URL
LINE = """
# snippet
curl URL
# end
"""
COMMAND = [word for word in LINE.splitlines()[2].split() if word != "URL"]

import subprocess

VERSION = subprocess.run(["curl", "--version"], capture_output=True, text=True).stdout.split()[1]
VERSIONS = {"curl": VERSION}
NO_PAUSE = True


def request(method, url, body):
    words = COMMAND + ["-s", "-o", "/dev/null", "-w", "%{http_code}", url]
    if body:
        words += ["--data", body.decode()]
    done = subprocess.run(words, capture_output=True, text=True)
    return int(done.stdout) if done.returncode == 0 else f"exit {done.returncode}"
