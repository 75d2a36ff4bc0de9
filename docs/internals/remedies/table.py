#!/usr/bin/env python3
"""Prints the effects of `bench --json` as a table in Markdown: `table.py bench.json`."""

import json
import sys


def time(ms):
    return f"{ms:.1f} ms"


def main():
    facts = json.load(open(sys.argv[1], encoding="utf-8"))
    typical = {one["name"]: one["typical_ms"] for one in facts["variants"]}
    baselines = facts["effects_baseline"]
    print("Baseline: " + "; ".join(f"{name} ({time(typical[name])})" for name in baselines) + ".\n")
    print("| remedy | with | saves (95 % interval) | share |")
    print("| --- | --: | --: | --: |")
    for one in sorted(facts["effects"], key=lambda one: -one["saved_ms"]):
        interval = one["interval_ms"]
        saved = time(one["saved_ms"])
        if interval:
            saved += f" ({interval['low']:.1f} to {interval['high']:.1f})"
        share = f"{100 * one['saved_ms'] / one['reference_ms']:.0f} %"
        name = one["setting"] + "".join(f"; {words}" for words in one.get("inactive", []))
        print(f"| {name} | {time(one['reference_ms'] - one['saved_ms'])} | {saved} | {share} |")


main()
