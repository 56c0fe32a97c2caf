#!/usr/bin/python3
"""Drivers that need a toolchain of their own against a real node.

    toolchain_test.py go|java HELENUS FOLDER

Builds in FOLDER. Skipped (77) where the toolchain is not there or cannot fetch the driver."""

import os
import shutil
import subprocess
import sys

from helenus_process import Node

SKIPPED = 77
SECONDS_MAX = 300
HERE = os.path.dirname(os.path.abspath(__file__))
CLIENTS = os.path.join(HERE, "..", "..", "clients")

# Where golang-github-gocql-gocql-dev of Debian puts the driver, for programs without modules.
DEBIAN_GO = "/usr/share/gocode"

# The program that must be there, how to fetch the driver, and how to run the test with a port.
TOOLCHAINS = {
    "go": ("go", ["go", "mod", "tidy"], lambda port: ["go", "run", ".", port]),
    "java": (
        "mvn",
        ["mvn", "-q", "-B", "compile"],
        lambda port: ["mvn", "-q", "-B", "exec:java", f"-Dexec.args={port}"],
    ),
}

CLIENT_SOURCES = {"go": ("go", "src/helenus/operations"),
                  "java": ("java/src/main/java", "src/main/java")}


def main(name, program, folder):
    tool, fetch, run = TOOLCHAINS[name]
    if not shutil.which(tool):
        print(f"skipped: there is no {tool}")
        return SKIPPED
    shutil.copytree(os.path.join(HERE, name), folder, dirs_exist_ok=True)
    # The helpers for operation ids, where the program of the test finds them.
    source, target = CLIENT_SOURCES[name]
    shutil.copytree(os.path.join(CLIENTS, source), os.path.join(folder, target),
                    dirs_exist_ok=True)
    environment = dict(os.environ)
    if name == "go" and os.path.isdir(os.path.join(DEBIAN_GO, "src/github.com/gocql/gocql")):
        environment.update({"GO111MODULE": "off", "GOFLAGS": "",
                            "GOPATH": os.pathsep.join([DEBIAN_GO, os.path.abspath(folder)])})
        run = lambda port: ["go", "run", "main.go", port]
    elif subprocess.run(fetch, cwd=folder, timeout=SECONDS_MAX).returncode != 0:
        print(f"skipped: {tool} cannot fetch the driver")
        return SKIPPED
    with Node(program) as node:
        command = run(str(node.port))
        return subprocess.run(command, cwd=folder, env=environment, timeout=SECONDS_MAX).returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
