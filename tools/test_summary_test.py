#!/usr/bin/env python3
"""test_summary.py against the reports ctest writes."""

import contextlib
import io
import tempfile
import unittest
from pathlib import Path

import test_summary

PASSED = '<testcase name="A.Passes" status="run"/>'
FAILED = '<testcase name="B.Fails" status="fail"><failure message=""/></testcase>'
SKIPPED = (
    '<testcase name="C.Skips" status="notrun">'
    '<skipped message="SKIP_REGULAR_EXPRESSION_MATCHED"/></testcase>'
)
MISSING = (
    '<testcase name="D.Missing" status="notrun">'
    '<skipped message="Unable to find executable: d_test"/></testcase>'
)
DISABLED = '<testcase name="E.Disabled" status="disabled"/>'


def summary(*reports, options=()):
    """The exit code and the lines for reports made of these cases."""
    with tempfile.TemporaryDirectory() as folder:
        arguments = list(options)
        for number, cases in enumerate(reports):
            path = Path(folder, f"{number}.xml")
            path.write_text(f"<testsuite>{''.join(cases)}</testsuite>", encoding="utf-8")
            arguments.append(f"preset{number}={path}")
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            code = test_summary.main(arguments)
    return code, output.getvalue().splitlines()


class Summary(unittest.TestCase):
    def test_all_passed(self):
        self.assertEqual(summary([PASSED], [PASSED, PASSED]), (0, ["3 passed, 0 failed"]))

    def test_failures_are_named_with_their_preset(self):
        code, lines = summary([PASSED], [FAILED])
        self.assertEqual((code, lines[0]), (1, "failed: B.Fails (preset1)"))
        self.assertEqual(lines[-1], "1 passed, 1 failed")

    def test_a_skipped_test_is_neither_passed_nor_failed(self):
        code, lines = summary([PASSED, SKIPPED, DISABLED])
        self.assertEqual((code, lines[-2:]), (0, ["2 skipped", "1 passed, 0 failed"]))

    def test_a_program_that_is_not_there_fails(self):
        code, lines = summary([PASSED, MISSING])
        self.assertEqual((code, lines[-1]), (1, "1 passed, 1 failed"))

    def test_nothing_run_is_a_failure(self):
        self.assertEqual(summary([]), (1, ["preset preset0 ran no test", "0 passed, 0 failed"]))
        self.assertEqual(summary([SKIPPED])[0], 1)
        self.assertEqual(summary([], options=["--selected"])[0], 1)

    def test_a_preset_without_a_test_is_a_failure_unless_tests_were_selected(self):
        lines = ["preset preset1 ran no test", "1 passed, 0 failed"]
        self.assertEqual(summary([PASSED], []), (1, lines))
        self.assertEqual(summary([PASSED], [], options=["--selected"]), (0, lines))


if __name__ == "__main__":
    unittest.main()
