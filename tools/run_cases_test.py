#!/usr/bin/env python3
"""run_cases.py with programs that behave as gtest programs do, well and badly."""

import contextlib
import io
import json
import os
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import run_cases

REPORT = """
import os
report = os.environ["GTEST_OUTPUT"].removeprefix("xml:")
open(report, "w").write('<testsuites><testsuite name="A">%s</testsuite></testsuites>')
"""
PASSED = '<testcase name="Passes" status="run" result="completed" time="1.5" classname="A"/>'
FAILED = (
    '<testcase name="Fails" status="run" result="completed" time="0" classname="A">'
    "<failure/></testcase>"
)
SKIPPED = '<testcase name="Skips" status="run" result="skipped" time="0" classname="A"/>'
DISABLED = '<testcase name="DISABLED_X" status="notrun" result="suppressed" classname="A"/>'
RUNNING = "print('[ RUN      ] A.First\\n[       OK ] A.First (20 ms)\\n[ RUN      ] A.Second')\n"


class RunCases(unittest.TestCase):
    def setUp(self):
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        environment = {k: v for k, v in os.environ.items() if not k.startswith("GTEST_")}
        self.enterContext(mock.patch.dict(os.environ, environment, clear=True))

    def run_program(self, text, limit=30):
        """The exit code, and the cases as (name, result, why)."""
        program = self.folder / "a_test"
        program.write_text(f"#!{sys.executable}\nimport sys\n{text}\n", encoding="utf-8")
        program.chmod(0o755)
        return self.run_command(program, limit)

    def run_command(self, program, limit=30):
        report = self.folder / "cases/a_test.json"
        output = io.TextIOWrapper(io.BytesIO())
        with contextlib.redirect_stdout(output):
            code = run_cases.main(report, limit, str(program))
        self.cases = json.loads(report.read_text(encoding="utf-8"))
        return code, [(case["name"], case["result"], case["why"]) for case in self.cases]

    def test_every_case_is_reported_with_its_time(self):
        code, cases = self.run_program(REPORT % (PASSED + SKIPPED + DISABLED))
        expected = [("A.Passes", "passed", ""), ("A.Skips", "skipped", "")]
        self.assertEqual((code, cases), (0, expected))
        self.assertEqual(self.cases[0]["seconds"], 1.5)

    def test_a_failed_case(self):
        code, cases = self.run_program(REPORT % (PASSED + FAILED) + "sys.exit(1)")
        self.assertEqual((code, cases[1:]), (1, [("A.Fails", "failed", "")]))

    def test_a_crash_names_the_case_that_was_running(self):
        code, cases = self.run_program(f"{RUNNING}sys.stdout.flush()\nimport os\nos.abort()")
        self.assertEqual(code, 1)
        crashed = ("A.Second", "failed", "ended by signal SIGABRT")
        self.assertEqual(cases, [("A.First", "passed", ""), crashed])
        self.assertEqual(self.cases[0]["seconds"], 0.02)

    def test_an_exit_in_the_middle_of_a_case(self):
        _, cases = self.run_program(f"{RUNNING}sys.exit(0)")
        self.assertEqual(cases[-1], ("A.Second", "failed", "exit code 0"))

    def test_a_program_that_hangs_names_the_case_that_was_running(self):
        hang = f"{RUNNING}sys.stdout.flush()\nimport time\ntime.sleep(60)"
        code, cases = self.run_program(hang, limit=0.5)
        self.assertEqual(code, 1)
        self.assertEqual(cases[-1], ("A.Second", "failed", "was still running after 0.5 s"))

    def test_a_crash_before_the_first_case(self):
        code, cases = self.run_program("sys.exit(3)")
        self.assertEqual((code, cases), (1, [("a_test", "failed", "exit code 3, between cases")]))

    def test_a_failure_after_the_last_case(self):
        code, cases = self.run_program(REPORT % PASSED + "sys.exit(23)")
        self.assertEqual(code, 1)
        self.assertEqual(cases[-1], ("a_test", "failed", "exit code 23 after its cases"))

    def test_half_a_report_is_none(self):
        half = 'import os\nopen(os.environ["GTEST_OUTPUT"][4:], "w").write("<testsuites><te")'
        _, cases = self.run_program(half)
        self.assertEqual(cases, [("a_test", "failed", "exit code 0, between cases")])

    def test_no_case_is_a_failure_unless_cases_were_chosen(self):
        code, cases = self.run_program(REPORT % "")
        self.assertEqual((code, cases), (1, [("a_test", "failed", "ran no case")]))
        with mock.patch.dict(os.environ, {"GTEST_FILTER": "B.*"}):
            self.assertEqual(self.run_program(REPORT % ""), (0, []))

    def test_a_program_that_is_not_there(self):
        code, cases = self.run_command(self.folder / "no_test")
        self.assertEqual(code, 1)
        self.assertIn("could not start", cases[0][2])

    def test_a_report_of_an_earlier_run_is_gone(self):
        self.run_program(REPORT % PASSED)
        _, cases = self.run_program("sys.exit(3)")
        self.assertEqual(len(cases), 1)


if __name__ == "__main__":
    unittest.main()
