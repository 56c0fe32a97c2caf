#!/usr/bin/python3
"""The snippets of README.md, run as they stand there against three nodes as ./run starts them.

    readme_test.py HELENUS README FOLDER python|js|sh|bash

FOLDER is where npm puts its driver. Without npm, or while somebody else has a port of theirs, it is
skipped (77)."""

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading

from helenus_process import HOST

SKIPPED = 77
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


# What stands in for ./run: it builds nothing, and starts the program that was built.
RUN = """#!/bin/bash
which=all
[[ ${1-} != --node ]] || which=$2
exec tools/three_nodes.sh build/release/bin/helenus "$which" data 9042 7070 7000
"""


def tree(folder, program, readme):
    """Looks like the repository, as far as the snippets go."""
    os.makedirs(os.path.join(folder, "build/release/bin"))
    os.symlink(os.path.abspath(program), os.path.join(folder, "build/release/bin/helenus"))
    tools = os.path.join(os.path.dirname(os.path.abspath(readme)), "tools")
    os.symlink(tools, os.path.join(folder, "tools"))
    with open(os.path.join(folder, "run"), "w") as file:
        file.write(RUN)
    os.chmod(os.path.join(folder, "run"), 0o755)


@contextlib.contextmanager
def three_nodes(program, readme):
    """Gives the folder in which they were started."""
    with tempfile.TemporaryDirectory() as folder:
        tree(folder, program, readme)
        nodes = subprocess.Popen(["./run"], cwd=folder, stdout=subprocess.PIPE, text=True)
        try:
            for line in nodes.stdout:
                print(line, end="")
                if line.startswith("  stop"):
                    break
            else:
                sys.exit("they did not start")
            yield folder
        finally:
            nodes.terminate()
            nodes.wait(timeout=SECONDS_MAX)


def lose_a_node(text, folder):
    # In a session of its own: what it leaves behind is the node that came back.
    shell = subprocess.Popen(["bash", "-e", "-c", text], cwd=folder, start_new_session=True,
                             stdout=subprocess.PIPE, text=True)
    watch = threading.Timer(SECONDS_MAX, os.killpg, (shell.pid, signal.SIGKILL))
    watch.start()
    try:
        output = ""
        for line in shell.stdout:
            print(line, end="")
            output += line
        if shell.wait() != 0:
            sys.exit(f"the snippet answered with {shell.returncode}")
    finally:
        watch.cancel()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(shell.pid, signal.SIGTERM)
    for wanted in ("500 rows at QUORUM", "1000 rows at QUORUM", "3 of 3 nodes up"):
        if wanted not in output:
            sys.exit(f"the snippet did not say {wanted!r}")


def main(program, readme, folder, language):
    for port in (9042, 7000, 7070):
        if not is_free(port):
            print(f"skipped: somebody else listens on port {port}")
            return SKIPPED
    if language == "js":
        os.makedirs(folder, exist_ok=True)
        npm = shutil.which("npm")
        if not npm or not shutil.which("node"):
            print("skipped: there is no npm")
            return SKIPPED
        if not os.path.isdir(os.path.join(folder, "node_modules", "cassandra-driver")):
            command = [npm, "install", "--no-audit", "--no-fund", "--silent", "cassandra-driver"]
            if subprocess.run(command, cwd=folder, timeout=SECONDS_MAX).returncode != 0:
                print("skipped: npm cannot install the driver")
                return SKIPPED
    with three_nodes(program, readme) as place:
        text = snippet(readme, language)
        if language == "sh":
            lose_a_node(text, place)
        elif language == "bash":
            run(["bash", "-e"], text, place, '{"siblings":["milk and eggs"]}')
        elif language == "python":
            run(["/usr/bin/python3", "-"], text, place, "Stella by Starlight")
        else:
            run(["node", "-"], text, folder, "Blue in Green")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
