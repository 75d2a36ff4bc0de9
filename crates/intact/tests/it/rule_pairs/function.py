"""A function that runs a command at each invocation: function.py COMMAND..."""

import subprocess
import sys

import runtime


def run_command(event, id):
    subprocess.run(sys.argv[1:], check=True)


runtime.run(run_command)
