#!/usr/bin/env python3
"""Sums up the JUnit reports of ctest runs: test_summary.py PRESET=FILE...

Names what failed and what was skipped and ends with `N passed, N failed`. A test that could not
start counts as failed; one that skipped itself counts as neither. Exit code 1 if a test failed or
none ran.
"""

import sys
import xml.etree.ElementTree as ElementTree


def outcome(case):
    """`passed`, `failed` or `skipped` for one testcase element."""
    status = case.get("status")
    if status == "run":
        return "passed"
    if status == "disabled":
        return "skipped"
    skipped = case.find("skipped")
    # ctest reports a program that is not there as skipped, too; only a test can skip itself.
    if skipped is not None and skipped.get("message", "").startswith("SKIP_"):
        return "skipped"
    return "failed"


def main(arguments):
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    for argument in arguments:
        preset, _, path = argument.partition("=")
        for case in ElementTree.parse(path).getroot().iter("testcase"):
            result = outcome(case)
            counts[result] += 1
            if result != "passed":
                print(f"{result}: {case.get('name')} ({preset})")
    if counts["skipped"]:
        print(f"{counts['skipped']} skipped")
    print(f"{counts['passed']} passed, {counts['failed']} failed")
    return 0 if counts["passed"] > 0 and counts["failed"] == 0 else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
