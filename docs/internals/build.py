#!/usr/bin/env python3
"""CPU time of a release build, by crate: the table of build.md.

    export RUSTC_WRAPPER=$PWD/docs/internals/build.py BUILD_COSTS=/tmp/costs.tsv
    CARGO_INCREMENTAL=0 cargo build --release --target-dir /tmp/costs
    python3 docs/internals/build.py /tmp/costs.tsv

As RUSTC_WRAPPER it runs rustc, and appends the crate, its optimization level and its seconds of CPU (user and system) to
BUILD_COSTS. C and assembly, which build scripts compile, are not in it: `time cargo build` minus the total.

With the file it writes the table into build.md, and the crates of the workspace that the build lacks.
"""

import os
import resource
import subprocess
import sys
import textwrap
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BEGIN, END = "<!-- costs: begin -->", "<!-- costs: end -->"


def compile_crate(words):
    code = subprocess.call(words)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    name = words[words.index("--crate-name") + 1] if "--crate-name" in words else "-"
    level = next((word.split("=")[1] for word in words if word.startswith("opt-level=")), "0")
    with open(os.environ["BUILD_COSTS"], "a") as file:
        file.write(f"{name}\t{level}\t{used.ru_utime + used.ru_stime:.2f}\n")
    return code


def table(path, least=2.0):
    costs = defaultdict(float)
    with open(path) as file:
        for line in file:
            name, level, seconds = line.rstrip("\n").split("\t")
            costs[name, level] += float(seconds)
    rows = sorted(costs.items(), key=lambda row: -row[1])
    lines = ["| crate | opt-level | s |", "| --- | --- | --- |"]
    lines += [f"| `{name}` | {level} | {seconds:.1f} |" for (name, level), seconds in rows if seconds >= least]
    rest = [seconds for _, seconds in rows if seconds < least]
    lines += [f"| {len(rest)} others | | {sum(rest):.1f} |", f"| all | | {sum(costs.values()):.1f} |"]
    built = {name for name, _ in costs}
    missing = sorted(name for name in os.listdir(ROOT / "crates") if f"intact_{name}".removesuffix("_intact") not in built)
    if missing:
        names = ", ".join(f"`{name}`" for name in missing)
        lines = textwrap.wrap(f"The build was ended early. The table lacks the crates {names}.", 100) + [""] + lines
    return "\n".join(lines)


def write(path):
    page = ROOT / "docs/internals/build.md"
    before, rest = page.read_text().split(BEGIN)
    page.write_text(before + BEGIN + "\n\n" + table(path) + "\n\n" + END + rest.split(END)[1])


if __name__ == "__main__":
    if len(sys.argv) == 2:
        write(sys.argv[1])
    else:
        sys.exit(compile_crate(sys.argv[1:]))
