# one process for all URLs
LINE = """
# snippet
wget URL URL URL
# end
"""
COMMAND = [word for word in LINE.splitlines()[2].split() if word != "URL"]

import os
import subprocess

VERSION = subprocess.run(["wget", "--version"], capture_output=True, text=True).stdout.split()[2]
VERSIONS = {"wget": VERSION}
NO_PAUSE = True
ONE_AT_A_TIME = True


def batch(count, at_once, method, url):
    words = COMMAND + ["-q", "-O", "/dev/null", "--server-response", "--content-on-error"]
    words += ["--ca-certificate", os.environ.get("INTACT_CA", "")]
    words += [f"{url}?{at}" for at in range(count)]
    if method == "POST":
        words += ["--post-data", "ping"]
    done = subprocess.run(words, capture_output=True, text=True)
    lines = [line.split() for line in done.stderr.splitlines()]
    codes = [int(words[1]) for words in lines if words and words[0].startswith("HTTP/")]
    return codes + [f"exit {done.returncode}"] * (count - len(codes))
