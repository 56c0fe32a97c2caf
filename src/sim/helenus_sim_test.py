#!/usr/bin/env python3
"""helenus-sim as its users see it: arguments, the last line, and lines that replay failures.

    helenus_sim_test.py PROGRAM
"""

import re
import signal
import subprocess
import sys
import unittest

PROGRAM = ""
TOYS = (
    "toy-ack-before-sync",
    "toy-trusts-order",
    "toy-error-is-absence",
    "toy-trusts-image",
    "toy-rows-in-memory",
    "toy-rows-at-one",
    "toy-counters-no-ids",
)
SEEDS_MAX = 1000
REPLAY = "build/release/bin/helenus-sim --scenario "
LAST_LINE = re.compile(r"(\d+) seeds, (\d+) violations, state hash ([0-9a-f]{16})")


def run(*arguments):
    return subprocess.run(
        [PROGRAM, *map(str, arguments)], capture_output=True, text=True, check=False
    )


def last_line(done):
    return LAST_LINE.fullmatch(done.stdout.rstrip("\n").split("\n")[-1])


def lines_of(done, kind):
    return [line for line in done.stdout.split("\n") if line.startswith(kind)]


def first_failure(scenario):
    """The report of the first seed that fails: its lines, of which the first replays it."""
    start, count = 0, 4
    while start < SEEDS_MAX:
        done = run("--scenario", scenario, "--from", start, "--seeds", count)
        if done.returncode == 1:
            lines = done.stdout.split("\n")
            starts = [i for i, line in enumerate(lines) if line.startswith(REPLAY)]
            return lines[: (starts + [len(lines)])[1]]
        start += count
        count *= 2
    return None


class ArgumentsTest(unittest.TestCase):
    def test_help_and_list_succeed(self):
        self.assertIn("--scenario", run("--help").stdout)
        listed = run("--list")
        self.assertEqual(listed.returncode, 0)
        for name in ("echo", "append-log", "mint", "register", *TOYS):
            self.assertIn(name, listed.stdout)

    def test_bad_arguments_are_told_in_one_line(self):
        for arguments in (
            ["--scenario", "no-such-thing"],
            ["--seeds", "0"],
            ["--seeds", "many"],
            ["--seed", "-1"],
            ["--seed", "1", "--seeds", "2"],
            ["--from", str(2**64 - 1), "--seeds", "2"],
            ["--jobs", "0"],
            ["--nonsense"],
            ["stray"],
        ):
            with self.subTest(arguments=arguments):
                done = run(*arguments)
                self.assertEqual(done.returncode, 2)
                self.assertEqual(done.stdout, "")
                self.assertRegex(done.stderr, r"\Ahelenus-sim: [^\n]+\n\Z")

    def test_the_default_runs_every_right_scenario_and_no_wrong_one(self):
        done = run("--seed", 3)
        self.assertEqual(done.returncode, 0)
        for name in ("echo", "append-log", "mint", "register"):
            self.assertIn(f"{name}, seed 3:", done.stdout)
        self.assertNotIn("toy", done.stdout)
        self.assertEqual(last_line(done).group(1, 2), ("1", "0"))

    def test_progress_goes_to_standard_error(self):
        done = run("--scenario", "echo", "--seeds", 4)
        self.assertIn("4 of 4 runs", done.stderr)
        self.assertEqual(len(done.stdout.splitlines()), 1)

    def test_verbose_shows_plan_log_and_buggify_sites(self):
        done = run("--scenario", "register", "--seed", 2, "--verbose")
        self.assertTrue(lines_of(done, "plan: "))
        self.assertTrue(lines_of(done, "buggify: service.late_answer: "))
        self.assertIn("replica0", done.stderr)


class DeathTest(unittest.TestCase):
    """A run that takes the process with it is told, too: a crash, or one that never ends."""

    def stderr_of_killed(self, number):
        command = [PROGRAM, "--scenario", "register", "--seeds", "20", "--verbose"]
        with subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        ) as running:
            # What a node logs, it logs during a run.
            self.assertIn("replica", running.stderr.readline())
            running.send_signal(number)
            _, rest = running.communicate()
            self.assertNotEqual(running.returncode, 0)
        return rest

    def test_the_replay_line_survives_the_process(self):
        for number in (signal.SIGSEGV, signal.SIGABRT, signal.SIGTERM):
            with self.subTest(signal=number.name):
                told = self.stderr_of_killed(number)
                replay = re.compile(rf"replay: {REPLAY}register --seed \d+$", re.M)
                self.assertEqual(len(replay.findall(told)), 1, told)


class JobsTest(unittest.TestCase):
    """Several processes print what one does, in the same order."""

    def test_the_output_does_not_depend_on_the_number_of_processes(self):
        arguments = ["--scenario", "toy-ack-before-sync", "--scenario", "echo", "--seeds", 6]
        alone = run(*arguments)
        for jobs in (2, 3, 50):
            with self.subTest(jobs=jobs):
                together = run(*arguments, "--jobs", jobs)
                self.assertEqual(together.returncode, alone.returncode)
                self.assertEqual(together.stdout, alone.stdout)
                self.assertEqual(together.stderr, alone.stderr)


class HashTest(unittest.TestCase):
    def test_a_seed_gives_the_same_hash_whenever_it_is_run(self):
        for name in ("echo", "append-log", "mint", "register", *TOYS):
            with self.subTest(scenario=name):
                hashes = {
                    last_line(run("--scenario", name, "--from", 5, "--seeds", 3)).group(3)
                    for _ in range(2)
                }
                self.assertEqual(len(hashes), 1)

    def test_other_seeds_give_another_hash(self):
        one, other = (last_line(run("--scenario", "echo", "--seed", seed)) for seed in (1, 2))
        self.assertNotEqual(one.group(3), other.group(3))


class ToysTest(unittest.TestCase):
    """The simulator can fail: what is wrong on purpose is caught, and the line replays it."""

    def check(self, scenario):
        report = first_failure(scenario)
        self.assertIsNotNone(report, f"{scenario} survives {SEEDS_MAX} seeds")
        violations = [line for line in report if line.startswith("violation: ")]
        plan = [line for line in report if line.startswith("plan: ")]
        self.assertTrue(violations)
        self.assertEqual(len(plan), 1)
        self.assertTrue(report[0].startswith(f"{REPLAY}{scenario} --seed "), report[0])
        self.assertTrue([line for line in report if line.startswith("trace: ")])
        command = report[0].split()
        replays = [run(*command[1:]) for _ in range(2)]
        for replay in replays:
            self.assertEqual(replay.returncode, 1)
            self.assertEqual(lines_of(replay, "violation: "), violations)
            self.assertEqual(lines_of(replay, "plan: "), plan)
            self.assertEqual(replay.stdout.split("\n")[0], report[0])
        self.assertEqual(last_line(replays[0]).group(3), last_line(replays[1]).group(3))

    def test_acknowledging_before_syncing_is_caught(self):
        self.check("toy-ack-before-sync")

    def test_trusting_the_order_of_messages_is_caught(self):
        self.check("toy-trusts-order")

    def test_taking_an_error_for_absence_is_caught(self):
        self.check("toy-error-is-absence")

    def test_trusting_an_older_image_is_caught(self):
        self.check("toy-trusts-image")

    def test_a_node_that_acknowledges_rows_too_early(self):
        self.check("toy-rows-in-memory")

    def test_reading_too_few_replicas_is_caught(self):
        self.check("toy-rows-at-one")

    def test_increments_without_ids_are_caught(self):
        self.check("toy-counters-no-ids")


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
