#!/usr/bin/python3
"""npm's driver for Cassandra against a real node: node_test.py HELENUS FOLDER

FOLDER is where npm puts the driver. Skipped (77) where npm is not there or cannot install."""

import os
import shutil
import subprocess
import sys

from helenus_process import Node

SKIPPED = 77
SECONDS_MAX = 240


def main(program, folder):
    npm = shutil.which("npm")
    if not npm or not shutil.which("node"):
        print("skipped: there is no npm")
        return SKIPPED
    os.makedirs(folder, exist_ok=True)
    if not os.path.isdir(os.path.join(folder, "node_modules", "cassandra-driver")):
        command = [npm, "install", "--no-audit", "--no-fund", "--silent", "cassandra-driver"]
        if subprocess.run(command, cwd=folder, timeout=SECONDS_MAX).returncode != 0:
            print("skipped: npm cannot install the driver")
            return SKIPPED
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "node_test.js")
    modules = os.path.join(folder, "node_modules")
    with Node(program) as node:
        test = subprocess.Popen(
            ["node", script, str(node.port)],
            env={**os.environ, "NODE_PATH": modules},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for line in test.stdout:
            if line == "restart\n":
                node.stop()
                node.start()
                test.stdin.write("done\n")
                test.stdin.flush()
            else:
                print(line, end="", flush=True)
        return test.wait(timeout=SECONDS_MAX)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
