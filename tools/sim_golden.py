#!/usr/bin/env python3
"""The state hashes that every build of the simulator must print.

    tools/sim_golden.py check PROGRAM            runs what src/sim/golden.txt lists, and compares
    tools/sim_golden.py update PROGRAM           runs it, and writes the file anew
    tools/sim_golden.py compare PROGRAM FOLDER   runs the others, as another build has run them

The scenarios of src/sim/golden.txt stand on the runtime alone, and their hashes are kept there.
Those of the product change with every change of it; their hashes are kept in FOLDER, in a file
named after the sources they were made from, by whichever build comes first, and every other build
of the same sources must find the same.

A golden hash changes with the code that is simulated: that is no fault, and `update` is the
answer. That two builds of the same code differ is one: something depends on more than the seed.
"""

import hashlib
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
GOLDEN = ROOT / "src/sim/golden.txt"
LAST_LINE = re.compile(r"^(\d+) seeds, (\d+) violations, state hash ([0-9a-f]{16})$")
SEEDS_OF_OTHERS = 1
# Of the same nodes or engine as another scenario; toys are, too.
VARIANTS = ("rows-periodic", "rows-restored", "ring", "cql-statements-of-three", "siblings",
            "counters", "storage-two-crashes", "storage-lost-log", "storage-trouble",
            "storage-ranges")


def read_entries():
    """Yields (line, scenario, first seed, seeds, hash); a comment yields (line, None, ...)."""
    for line in GOLDEN.read_text().splitlines():
        if not line or line.startswith("#"):
            yield line, None, None, None, None
        else:
            scenario, first, seeds, state_hash = line.split()
            yield line, scenario, first, seeds, state_hash


def run(program, scenario, first, seeds):
    command = [program, "--scenario", scenario, "--from", str(first), "--seeds", str(seeds)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    match = LAST_LINE.match(done.stdout.rstrip("\n").split("\n")[-1])
    if match is None:
        sys.exit(f"{' '.join(command)}: no state hash\n{done.stdout}{done.stderr}")
    return match.group(3)


def run_entries(program):
    """The lines of the golden file as they should be, and the differences."""
    lines, differences = [], []
    for line, scenario, first, seeds, expected in read_entries():
        if scenario is None:
            lines.append(line)
            continue
        actual = run(program, scenario, first, seeds)
        lines.append(f"{scenario} {first} {seeds} {actual}")
        if actual != expected:
            differences.append(f"{scenario} from {first}, {seeds} seeds: {actual} not {expected}")
    return lines, differences


def source_digest():
    digest = hashlib.sha256()
    for path in sorted(p for p in (ROOT / "src").rglob("*") if p.suffix in (".h", ".cc")):
        digest.update(str(path.relative_to(ROOT)).encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def compare_others(program, folder):
    """Differences between this build and the one that ran first on the same sources."""
    listed = subprocess.run([program, "--list"], capture_output=True, text=True, check=True)
    names = [line.split()[0] for line in listed.stdout.splitlines()]
    golden = {scenario for _, scenario, *_ in read_entries()}
    others = [name for name in names
              if name not in golden and not name.startswith("toy-") and name not in VARIANTS]
    found = "".join(f"{name} {run(program, name, 0, SEEDS_OF_OTHERS)}\n" for name in others)
    kept = Path(folder, f"{source_digest()}.txt")
    if not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(found)
    if kept.read_text() == found:
        return []
    return [f"this build:\n{found}another build of the same sources:\n{kept.read_text()}"]


def main():
    arguments = sys.argv[1:]
    if len(arguments) == 2 and arguments[0] == "update":
        lines, differences = run_entries(arguments[1])
        GOLDEN.write_text("\n".join(lines) + "\n")
        print(f"{len(differences)} hashes changed")
        return 0
    if len(arguments) == 3 and arguments[0] == "compare":
        differences = compare_others(arguments[1], arguments[2])
    elif len(arguments) == 2 and arguments[0] == "check":
        _, differences = run_entries(arguments[1])
        if differences:
            differences.append("if the simulated code has changed: "
                               "tools/sim_golden.py update PROGRAM")
    else:
        sys.exit(__doc__)
    print("\n".join(differences))
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
