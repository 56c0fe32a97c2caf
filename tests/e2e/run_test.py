#!/usr/bin/python3
"""Three nodes as ./run starts them: up in one command, down with it, whatever ends it.

    run_test.py HELENUS THREE_NODES.SH
"""

import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "drivers"))
from helenus_process import free_port  # noqa: E402

HELENUS = None  # the program under test; set in main
SCRIPT = None
SECONDS_MAX = 60
ADDRESSES = [f"127.0.0.{number}" for number in (1, 2, 3)]


def await_that(condition, what):
    deadline = time.monotonic() + SECONDS_MAX
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {SECONDS_MAX} s: {what}")
        time.sleep(0.02)


def is_there(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


class RunTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.ports = [free_port(ADDRESSES) for _ in range(3)]

    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.data = os.path.join(scratch.name, "data")
        self.process = None
        self.addCleanup(self.clean_up)

    def clean_up(self):
        if self.process and self.process.poll() is None:
            self.process.terminate()
            self.process.wait(timeout=SECONDS_MAX)

    def command(self, *arguments, which="all"):
        return [SCRIPT, HELENUS, which, self.data, *map(str, self.ports), *arguments]

    def start(self):
        """Gives the ids of the nodes."""
        self.process = subprocess.Popen(self.command(), stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, text=True,
                                        start_new_session=True)
        self.addCleanup(self.process.stdout.close)
        return [int(re.search(r"pid (\d+)", self.line(f"node {number} ")).group(1))
                for number in (1, 2, 3)]

    def line(self, wanted):
        """The next one with that in it."""
        watch = threading.Timer(SECONDS_MAX, self.process.kill)
        watch.start()
        try:
            for line in self.process.stdout:
                if wanted in line:
                    return line
        finally:
            watch.cancel()
        raise AssertionError(f"it ended without a line that has {wanted}")

    def end(self, number):
        self.process.send_signal(number)
        self.process.wait(timeout=SECONDS_MAX)
        return self.process.returncode

    def press_ctrl_c(self):
        """A terminal signals all that run in its foreground, not the script alone."""
        os.killpg(self.process.pid, signal.SIGINT)
        self.process.wait(timeout=SECONDS_MAX)
        return self.process.returncode

    def status(self, number):
        return subprocess.run([HELENUS, "status", "--admin", f"127.0.0.{number}:{self.ports[1]}"],
                              capture_output=True, text=True).stdout

    def assert_none(self, pids):
        await_that(lambda: not any(map(is_there, pids)), "no node runs")

    def test_they_are_up_and_stop_in_order_and_come_back_with_their_data(self):
        pids = self.start()
        for number in (1, 2, 3):
            self.assertIn("3 of 3 nodes up", self.status(number))
        before = sorted(re.findall(r"[0-9a-f-]{36} ", self.status(1)))
        self.assertEqual(self.end(signal.SIGTERM), 0)
        self.assertFalse(any(map(is_there, pids)))
        self.start()
        self.assertEqual(sorted(re.findall(r"[0-9a-f-]{36} ", self.status(1))), before)
        self.assertEqual(self.press_ctrl_c(), 0)
        for number in (1, 2, 3):
            with open(os.path.join(self.data, f"node{number}.log")) as file:
                self.assertRegex(file.read(), r"stopped\n(.*\n)+.*stopped\n\Z")

    def test_one_that_dies_is_told_of_and_comes_back_by_hand(self):
        pids = self.start()
        os.kill(pids[2], signal.SIGKILL)
        told = self.line("SIGKILL")
        self.assertIn(f"node 3 (pid {pids[2]})", told)
        self.assertIn("2 of 3 go on", told)
        self.assertIn(os.path.join(self.data, "node3.log"), told)
        await_that(lambda: "2 of 3 nodes up" in self.status(1), "it is seen to be down")
        again = subprocess.Popen(self.command(which="3"), stdout=subprocess.DEVNULL)
        try:
            await_that(lambda: "3 of 3 nodes up" in self.status(1), "it is seen to be up")
        finally:
            again.terminate()
            again.wait(timeout=SECONDS_MAX)
        self.assertEqual(again.returncode, 0)
        self.assertEqual(self.end(signal.SIGTERM), 0)

    def test_none_is_left_when_it_is_killed(self):
        pids = self.start()
        self.end(signal.SIGKILL)
        self.assert_none(pids)

    def test_it_ends_with_the_last_of_them(self):
        for pid in self.start():
            os.kill(pid, signal.SIGTERM)
        self.line("no node runs any more")
        self.assertEqual(self.process.wait(timeout=SECONDS_MAX), 1)

    def test_a_second_start_says_that_one_runs(self):
        self.start()
        second = subprocess.run(self.command(), capture_output=True, text=True)
        self.assertEqual(second.returncode, 2)
        self.assertIn(f"run in {self.data} already, looked after by process {self.process.pid}\n",
                      second.stderr)
        self.assertIn("3 of 3 nodes up", self.status(2))

    def test_a_start_that_fails_stops_all_and_names_the_log(self):
        done = subprocess.run(self.command("--tokens", "none"), capture_output=True, text=True,
                              timeout=SECONDS_MAX)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertRegex(done.stderr, r"node \d did not start: .*; its log is .*/node\d\.log\n$")

    def test_a_stop_while_they_start_is_a_stop(self):
        blocked = subprocess.Popen(self.command("--seeds", "127.0.0.9:1"), stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True, start_new_session=True)
        blocked.stdout.readline()
        os.killpg(blocked.pid, signal.SIGINT)
        self.assertIn("stopped; the data stays", blocked.communicate(timeout=SECONDS_MAX)[0])
        self.assertEqual(blocked.returncode, 0)


if __name__ == "__main__":
    HELENUS = sys.argv.pop(1)
    SCRIPT = sys.argv.pop(1)
    unittest.main(verbosity=2)
