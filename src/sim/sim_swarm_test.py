#!/usr/bin/env python3
"""Many seeds of the small scenarios: nothing is violated, and every kind of fault happens.

    sim_swarm_test.py PROGRAM SEEDS

A fault that no seed ever meets tests nothing, however long the list of faults is.
"""

import re
import subprocess
import sys

SCENARIOS = ("echo", "append-log", "mint", "node", "register")
LAST_LINE = re.compile(r"(\d+) seeds, 0 violations, state hash [0-9a-f]{16}")


def main(program, seeds):
    command = [program, "--seeds", seeds, "--faults"]
    for name in SCENARIOS:
        command += ["--scenario", name]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    print(done.stdout, end="")
    lines = done.stdout.splitlines()
    last = LAST_LINE.fullmatch(lines[-1]) if lines else None
    if done.returncode != 0 or last is None or last.group(1) != seeds:
        print(f"exit code {done.returncode}, and not the last line that was expected")
        return 1
    counts = [line.split()[1:] for line in lines if line.startswith("fault: ")]
    absent = [name for name, count in counts if int(count) == 0]
    if not counts or absent:
        print(f"never happened in {seeds} seeds: {', '.join(absent) or 'any fault at all'}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
