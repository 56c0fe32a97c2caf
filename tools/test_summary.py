#!/usr/bin/env python3
"""Sums up the reports of ctest runs: test_summary.py [OPTION...] PRESET=FILE...

FILE is the JUnit report of ctest. A test in it that is a gtest program stands for its cases, which
run_cases.py left in the folder `cases` beside FILE. Names what failed, what was skipped and the ten
slowest, and ends with `N passed, N failed`, and `, N skipped` if some were. A test that could not
start counts as failed; one that skipped itself counts as neither. A case that takes longer than the
limit is failed. Exit code 1 if a test failed, none ran, or a preset ran none: a suite that loses
all its tests must not look green.

    --selected        the caller chose among the tests: a preset without one of them is only named
    --limit SECONDS   how long a case may take; 60 unless given
    --times FILE      where to write how long every case took, the slowest first
"""

import argparse
import json
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

SLOWEST = 10


def outcome(element):
    """`passed`, `failed` or `skipped` for one testcase element of ctest."""
    status = element.get("status")
    if status == "run":
        return "passed"
    if status == "disabled":
        return "skipped"
    skipped = element.find("skipped")
    # ctest reports a program that is not there as skipped, too; only a test can skip itself.
    if skipped is not None and skipped.get("message", "").startswith("SKIP_"):
        return "skipped"
    return "failed"


def cases_of(path):
    """The cases of one preset's report."""
    for element in ElementTree.parse(path).getroot().iter("testcase"):
        name = element.get("name")
        kept = path.parent / "cases" / f"{name}.json"
        result = outcome(element)
        if not kept.exists():
            seconds = float(element.get("time") or 0)
            yield {"name": name, "result": result, "seconds": seconds, "why": ""}
            continue
        cases = json.loads(kept.read_text(encoding="utf-8"))
        yield from cases
        if result == "failed" and not any(case["result"] == "failed" for case in cases):
            yield {"name": name, "result": "failed", "seconds": 0, "why": "failed after its cases"}


def judge(case, limit):
    """Fails a case that passed, but too slowly."""
    if case["result"] == "passed" and case["seconds"] > limit:
        case["result"] = "failed"
        case["why"] = f"took {case['seconds']:.1f} s, {limit:g} s is the limit"
    return case


def print_slowest(cases, times):
    slowest = sorted(cases, key=lambda case: (-case["seconds"], case["name"]))
    lines = [f"{case['seconds']:9.3f} s  {case['name']} ({case['preset']})" for case in slowest]
    if lines:
        print("the slowest:", *lines[:SLOWEST], sep="\n")
    if times:
        times.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        print(f"how long every test took: {times}")


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--selected", action="store_true")
    parser.add_argument("--limit", type=float, default=60)
    parser.add_argument("--times", type=Path)
    parser.add_argument("reports", nargs="+", metavar="PRESET=FILE")
    options = parser.parse_args(arguments)
    all_cases = []
    empty_presets = 0
    for report in options.reports:
        preset, _, path = report.partition("=")
        cases = [judge(case, options.limit) | {"preset": preset} for case in cases_of(Path(path))]
        for case in cases:
            if case["result"] != "passed":
                why = f": {case['why']}" if case["why"] else ""
                print(f"{case['result']}: {case['name']} ({preset}){why}")
        if all(case["result"] == "skipped" for case in cases):
            empty_presets += 1
            print(f"preset {preset} ran no test")
        all_cases += cases
    print_slowest(all_cases, options.times)
    passed, failed, skipped = (
        sum(case["result"] == result for case in all_cases)
        for result in ("passed", "failed", "skipped")
    )
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    if passed == 0 or failed > 0:
        return 1
    return 1 if empty_presets and not options.selected else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
