#!/usr/bin/env python3
"""Sums up the JUnit reports of ctest runs: test_summary.py [--selected] PRESET=FILE...

Names what failed and what was skipped and ends with `N passed, N failed`. A test that could not
start counts as failed; one that skipped itself counts as neither. Exit code 1 if a test failed,
none ran, or a preset ran none: a suite that loses all its tests must not look green. With
--selected the caller chose among the tests, and a preset without one of them is only named.
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
    selected = arguments[:1] == ["--selected"]
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    empty_presets = 0
    for argument in arguments[1:] if selected else arguments:
        preset, _, path = argument.partition("=")
        ran_before = counts["passed"] + counts["failed"]
        for case in ElementTree.parse(path).getroot().iter("testcase"):
            result = outcome(case)
            counts[result] += 1
            if result != "passed":
                print(f"{result}: {case.get('name')} ({preset})")
        if counts["passed"] + counts["failed"] == ran_before:
            empty_presets += 1
            print(f"preset {preset} ran no test")
    if counts["skipped"]:
        print(f"{counts['skipped']} skipped")
    print(f"{counts['passed']} passed, {counts['failed']} failed")
    if counts["passed"] == 0 or counts["failed"] > 0:
        return 1
    return 1 if empty_presets and not selected else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
