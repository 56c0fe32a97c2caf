#!/usr/bin/env python3
"""The state hashes that every build of the simulator must print.

    tools/sim_golden.py check PROGRAM    runs what src/sim/golden.txt lists, compares
    tools/sim_golden.py update PROGRAM   runs it, and writes what came out

A hash covers every event of a run. It changes with the code that runs in the simulator: that is
no fault, and `update` is the answer. That two builds of the same code print different hashes is
one: something in a run depends on more than its seed.
"""

import re
import subprocess
import sys
from pathlib import Path

GOLDEN = Path(__file__).resolve().parent.parent / "src/sim/golden.txt"
LAST_LINE = re.compile(r"^(\d+) seeds, (\d+) violations, state hash ([0-9a-f]{16})$")


def read_entries():
    """Yields (line, scenario, first seed, seeds, hash); a comment yields (line, None, ...)."""
    for line in GOLDEN.read_text().splitlines():
        if not line or line.startswith("#"):
            yield line, None, None, None, None
        else:
            scenario, first, seeds, state_hash = line.split()
            yield line, scenario, first, seeds, state_hash


def run(program, scenario, first, seeds):
    command = [program, "--scenario", scenario, "--from", first, "--seeds", seeds]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    match = LAST_LINE.match(done.stdout.rstrip("\n").split("\n")[-1])
    if match is None:
        sys.exit(f"{' '.join(command)}: no state hash\n{done.stdout}{done.stderr}")
    return match.group(3)


def main():
    if len(sys.argv) != 3 or sys.argv[1] not in ("check", "update"):
        sys.exit(__doc__)
    action, program = sys.argv[1:]
    lines, wrong = [], 0
    for line, scenario, first, seeds, expected in read_entries():
        if scenario is None:
            lines.append(line)
            continue
        actual = run(program, scenario, first, seeds)
        lines.append(f"{scenario} {first} {seeds} {actual}")
        if actual != expected:
            wrong += 1
            print(f"{scenario}, seeds {first} + {seeds}: {actual}, expected {expected}")
    if action == "update":
        GOLDEN.write_text("\n".join(lines) + "\n")
        print(f"{wrong} hashes changed")
        return 0
    if wrong:
        print("if the code that is simulated has changed: tools/sim_golden.py update PROGRAM")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
