#!/usr/bin/python3
"""The snippets of README.md, run as they stand there against a node on the port they name; that of
the shell starts its nodes itself.

    readme_test.py HELENUS README FOLDER python|js|sh

FOLDER is where npm puts its driver. Without npm, or while somebody else has the port, it is
skipped (77)."""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

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


def form_cluster(program, text):
    """The program is where this one was built."""
    text = text.replace("build/release/bin/helenus", program)
    with tempfile.TemporaryDirectory() as folder:
        shell = subprocess.Popen(["bash", "-e", "-c", text], cwd=folder, start_new_session=True)
        try:
            if shell.wait(timeout=SECONDS_MAX) != 0:
                sys.exit(f"the snippet answered with {shell.returncode}")
            deadline = time.monotonic() + SECONDS_MAX
            while True:
                status = subprocess.run([program, "status"], capture_output=True, text=True)
                if "3 of 3 nodes up" in status.stdout:
                    return 0
                if time.monotonic() > deadline:
                    sys.exit(f"no cluster: {status.stdout}{status.stderr}")
                time.sleep(0.1)
        finally:
            os.killpg(shell.pid, signal.SIGKILL)


def main(program, readme, folder, language):
    ports = (PORT, 7000, 7070) if language == "sh" else (PORT,)
    for port in ports:
        if not is_free(port):
            print(f"skipped: somebody else listens on port {port}")
            return SKIPPED
    if language == "sh":
        return form_cluster(program, snippet(readme, "sh"))
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
