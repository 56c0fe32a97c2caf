#!/usr/bin/python3
"""The snippets of README.md, run as they stand there against a node on the port they name.

    readme_test.py HELENUS README FOLDER

FOLDER is where npm puts its driver. Without npm, or while somebody else has the port, it is
skipped (77)."""

import os
import re
import shutil
import socket
import subprocess
import sys

from helenus_process import HOST, Node

SKIPPED = 77
PORT = 9042
SECONDS_MAX = 120


def snippet(readme, language):
    with open(readme) as file:
        found = re.search(rf"^```{language}\n(.*?)^```$", file.read(), re.DOTALL | re.MULTILINE)
    if not found:
        sys.exit(f"{readme} has no snippet of {language}")
    return found.group(1)


def is_free(port):
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


def run(command, text, folder, expected):
    done = subprocess.run(
        command, input=text, cwd=folder, capture_output=True, text=True, timeout=SECONDS_MAX
    )
    print(done.stdout, done.stderr)
    if done.returncode != 0 or expected not in done.stdout:
        sys.exit(f"{command} answered with {done.returncode}, and not with {expected!r}")


def main(program, readme, folder, language):
    if not is_free(PORT):
        print(f"skipped: somebody else listens on port {PORT}")
        return SKIPPED
    os.makedirs(folder, exist_ok=True)
    if language == "js":
        npm = shutil.which("npm")
        if not npm or not shutil.which("node"):
            print("skipped: there is no npm")
            return SKIPPED
        if not os.path.isdir(os.path.join(folder, "node_modules", "cassandra-driver")):
            command = [npm, "install", "--no-audit", "--no-fund", "--silent", "cassandra-driver"]
            if subprocess.run(command, cwd=folder, timeout=SECONDS_MAX).returncode != 0:
                print("skipped: npm cannot install the driver")
                return SKIPPED
    node = Node(program)
    node.port = PORT
    with node:
        if language == "python":
            run(["/usr/bin/python3", "-"], snippet(readme, "python"), folder, "Stella by Starlight")
        else:
            run(["node", "-"], snippet(readme, "js"), folder, "Blue in Green")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
