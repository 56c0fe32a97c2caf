#!/usr/bin/env python3
"""test_summary.py against the reports that ctest and run_cases.py write."""

import contextlib
import io
import json
import tempfile
import unittest
from pathlib import Path

import test_summary

PASSED = '<testcase name="A.Passes" status="run" time="1.25"/>'
FAILED = '<testcase name="B.Fails" status="fail" time="0"><failure message=""/></testcase>'
SKIPPED = (
    '<testcase name="C.Skips" status="notrun">'
    '<skipped message="SKIP_REGULAR_EXPRESSION_MATCHED"/></testcase>'
)
MISSING = (
    '<testcase name="D.Missing" status="notrun">'
    '<skipped message="Unable to find executable: d_test"/></testcase>'
)
DISABLED = '<testcase name="E.Disabled" status="disabled"/>'


def case(name, result="passed", seconds=0.0, why=""):
    return {"name": name, "result": result, "seconds": seconds, "why": why}


class Summary(unittest.TestCase):
    def setUp(self):
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))

    def summary(self, *reports, options=(), cases=None):
        """The exit code and the lines for reports made of these tests, and cases of the first."""
        arguments = list(options)
        for number, tests in enumerate(reports):
            path = self.folder / f"{number}/tests.xml"
            path.parent.mkdir(exist_ok=True)
            path.write_text(f"<testsuite>{''.join(tests)}</testsuite>", encoding="utf-8")
            arguments.append(f"preset{number}={path}")
        for name, listed in (cases or {}).items():
            path = self.folder / f"0/cases/{name}.json"
            path.parent.mkdir(exist_ok=True)
            path.write_text(json.dumps(listed), encoding="utf-8")
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            code = test_summary.main(arguments)
        return code, output.getvalue().splitlines()

    def test_all_passed(self):
        code, lines = self.summary([PASSED], [PASSED, PASSED])
        self.assertEqual((code, lines[-1]), (0, "3 passed, 0 failed"))

    def test_failures_are_named_with_their_preset(self):
        code, lines = self.summary([PASSED], [FAILED])
        self.assertEqual((code, lines[0]), (1, "failed: B.Fails (preset1)"))
        self.assertEqual(lines[-1], "1 passed, 1 failed")

    def test_a_skipped_test_is_neither_passed_nor_failed(self):
        code, lines = self.summary([PASSED, SKIPPED, DISABLED])
        self.assertEqual((code, lines[-1]), (0, "1 passed, 0 failed, 2 skipped"))
        self.assertIn("skipped: C.Skips (preset0)", lines)

    def test_a_program_that_is_not_there_fails(self):
        code, lines = self.summary([PASSED, MISSING])
        self.assertEqual((code, lines[-1]), (1, "1 passed, 1 failed"))

    def test_nothing_run_is_a_failure(self):
        lines = ["preset preset0 ran no test", "0 passed, 0 failed"]
        self.assertEqual(self.summary([]), (1, lines))
        self.assertEqual(self.summary([SKIPPED])[0], 1)
        self.assertEqual(self.summary([], options=["--selected"])[0], 1)

    def test_a_preset_without_a_test_is_a_failure_unless_tests_were_selected(self):
        code, lines = self.summary([PASSED], [])
        self.assertEqual((code, lines[0]), (1, "preset preset1 ran no test"))
        self.assertEqual(self.summary([PASSED], [], options=["--selected"])[0], 0)

    def test_a_program_stands_for_its_cases(self):
        crashed = case("X.Two", "failed", 1, "ended by signal SIGSEGV")
        cases = [case("X.One"), crashed, case("X.Three")]
        failed = '<testcase name="x_test" status="fail"/>'
        code, lines = self.summary([PASSED, failed], cases={"x_test": cases})
        self.assertEqual((code, lines[-1]), (1, "3 passed, 1 failed"))
        self.assertEqual(lines[0], "failed: X.Two (preset0): ended by signal SIGSEGV")

    def test_a_program_that_fails_when_no_case_did(self):
        failed = '<testcase name="x_test" status="fail"/>'
        code, lines = self.summary([failed], cases={"x_test": [case("X.One")]})
        self.assertEqual((code, lines[-1]), (1, "1 passed, 1 failed"))
        self.assertEqual(lines[0], "failed: x_test (preset0): failed after its cases")

    def test_a_slow_case_fails_by_name(self):
        slow = {"x_test": [case("X.Slow", seconds=60.5), case("X.Quick", seconds=60)]}
        test = '<testcase name="x_test" status="run"/>'
        code, lines = self.summary([test], cases=slow)
        self.assertEqual((code, lines[-1]), (1, "1 passed, 1 failed"))
        self.assertEqual(lines[0], "failed: X.Slow (preset0): took 60.5 s, 60 s is the limit")
        self.assertEqual(self.summary([test], options=["--limit", "600"], cases=slow)[0], 0)

    def test_a_slow_test_that_is_no_program_of_cases_fails_too(self):
        code, lines = self.summary(['<testcase name="slow" status="run" time="61"/>'])
        self.assertEqual((code, lines[-1]), (1, "0 passed, 1 failed"))

    def test_the_ten_slowest_are_named_and_all_are_written(self):
        cases = [case(f"X.Case{number}", seconds=number) for number in range(12)]
        times = self.folder / "times.txt"
        _, lines = self.summary(
            ['<testcase name="x_test" status="run"/>'],
            options=["--times", str(times)],
            cases={"x_test": cases},
        )
        self.assertEqual(lines[0], "the slowest:")
        self.assertEqual(lines[1].split(), ["11.000", "s", "X.Case11", "(preset0)"])
        self.assertEqual(lines[11:], [f"how long every test took: {times}", "12 passed, 0 failed"])
        written = times.read_text(encoding="utf-8").splitlines()
        self.assertEqual(len(written), 12)
        self.assertIn("X.Case0", written[-1])


if __name__ == "__main__":
    unittest.main()
