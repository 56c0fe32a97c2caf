#!/usr/bin/env python3
"""Runs one gtest program and leaves what became of each of its cases.

    run_cases.py REPORT SECONDS PROGRAM [ARGUMENT...]

REPORT is a JSON list of {"name", "result", "seconds", "why"}, result one of passed, failed and
skipped. The program is ended after SECONDS. A case that was running when it ended early is failed
and named; so is a program that fails without a failed case, or runs none. Only GTEST_FILTER in the
environment may leave a program without a case. Exit code 0 if none failed, else 1.
"""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import xml.etree.ElementTree as ElementTree
from pathlib import Path

# A case may have printed something before these, on the same line.
EVENT = re.compile(rb"\[( RUN      |       OK |  FAILED  |  SKIPPED )\] (\S+?\.\S+?)(?:,|\s|$)")
TIME = re.compile(rb"\((\d+) ms\)$")
RESULTS = {b"OK": "passed", b"FAILED": "failed", b"SKIPPED": "skipped"}


def case(name, result, seconds, why=""):
    return {"name": name, "result": result, "seconds": round(seconds, 3), "why": why}


class Watcher:
    """Follows what the program prints, for the case of a program that writes no report."""

    def __init__(self):
        self.done = []
        self.running = None

    def line(self, line):
        event = EVENT.search(line)
        if event is None:
            return
        word, name = event.group(1).strip(), event.group(2).decode(errors="replace")
        time = TIME.search(line.rstrip())
        if word == b"RUN":
            self.running = name
        elif name == self.running and time is not None:
            self.done.append(case(name, RESULTS[word], int(time.group(1)) / 1000))
            self.running = None


def cases_of(report):
    """The cases that ran, of a report that gtest wrote; None if there is no whole one."""
    try:
        root = ElementTree.parse(report).getroot()
    except (OSError, ElementTree.ParseError):
        return None
    cases = []
    for element in root.iter("testcase"):
        if element.get("status") == "notrun":
            continue
        if element.find("failure") is not None:
            result = "failed"
        else:
            result = "skipped" if element.get("result") == "skipped" else "passed"
        name = f"{element.get('classname')}.{element.get('name')}"
        cases.append(case(name, result, float(element.get("time", "0"))))
    return cases


def how_it_ended(code, timed_out, limit):
    if timed_out:
        return f"was still running after {limit:g} s"
    if code < 0:
        return f"ended by signal {signal.Signals(-code).name}"
    return f"exit code {code}"


def run(limit, command):
    """The cases of one run, at least one of them failed if the run did."""
    program = Path(command[0]).name
    watcher = Watcher()
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "gtest.xml")
        environment = dict(os.environ, GTEST_OUTPUT=f"xml:{report}")
        try:
            process = subprocess.Popen(
                command, env=environment, stdout=subprocess.PIPE, start_new_session=True
            )
        except OSError as error:
            return [case(program, "failed", 0, f"could not start: {error.strerror}")]
        timed_out = threading.Event()

        def end():
            timed_out.set()
            os.killpg(process.pid, signal.SIGKILL)

        timer = threading.Timer(limit, end)
        timer.start()
        for line in process.stdout:
            sys.stdout.buffer.write(line)
            sys.stdout.buffer.flush()
            watcher.line(line)
        process.stdout.close()
        code = process.wait()
        timer.cancel()
        cases = cases_of(report)
    ending = how_it_ended(code, timed_out.is_set(), limit)
    if cases is None:
        cases = watcher.done
        if watcher.running:
            return [*cases, case(watcher.running, "failed", 0, ending)]
        return [*cases, case(program, "failed", 0, f"{ending}, between cases")]
    if code != 0 and not any(one["result"] == "failed" for one in cases):
        cases.append(case(program, "failed", 0, f"{ending} after its cases"))
    if not cases and "GTEST_FILTER" not in os.environ:
        cases.append(case(program, "failed", 0, "ran no case"))
    return cases


def main(report, limit, *command):
    Path(report).unlink(missing_ok=True)
    cases = run(float(limit), list(command))
    Path(report).parent.mkdir(parents=True, exist_ok=True)
    Path(report).write_text(json.dumps(cases), encoding="utf-8")
    failed = [one for one in cases if one["result"] == "failed"]
    for one in failed:
        print(f"failed: {one['name']}{': ' if one['why'] else ''}{one['why']}")
    return 1 if failed else 0


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
