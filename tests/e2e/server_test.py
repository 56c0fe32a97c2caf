#!/usr/bin/env python3
"""The program `helenus` as an operator meets it: start, health, restart, and what goes wrong."""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import unittest
import urllib.request

HELENUS = None  # the programs under test; set in main
HELENUS_SSTABLE = None
GOLDEN_SSTABLE = os.path.join(
    os.path.dirname(__file__), "../../src/storage/testdata/sstable-v1-lz4"
)
START_SECONDS_MAX = 60
ANY_PORTS = ("--admin", "127.0.0.1:0", "--cql", "127.0.0.1:0", "--listen", "127.0.0.1:0")


class Server:
    """A running node on a port of its own."""

    def __init__(self, folder, *arguments):
        self.process = subprocess.Popen(
            [HELENUS, "node", "--data", folder, *ANY_PORTS, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        # The line comes when the node is up; an empty one when it has ended instead.
        line = self.process.stdout.readline()
        if " is up: " not in line:
            raise AssertionError(f"did not start: {line}{self.process.communicate()[1]}")
        self.health_url = line.rsplit(" ", 1)[1].strip()
        self.port = int(self.health_url.split(":")[2].split("/")[0])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()

    def health(self):
        with urllib.request.urlopen(self.health_url, timeout=START_SECONDS_MAX) as answer:
            return json.load(answer)

    def stop(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        output, errors = self.process.communicate(timeout=START_SECONDS_MAX)
        return self.process.returncode, output, errors


def run(*arguments):
    return subprocess.run(
        [HELENUS, *arguments], capture_output=True, text=True, timeout=START_SECONDS_MAX
    )


class ServerTest(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.folder = os.path.join(self.scratch.name, "data")

    def tearDown(self):
        self.scratch.cleanup()

    def assert_refused(self, result, *words):
        """One clear line on standard error, and exit code 2."""
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertEqual(result.stdout, "")
        self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
        self.assertTrue(result.stderr.startswith("helenus: "), result.stderr)
        for word in words:
            self.assertIn(word, result.stderr)

    def test_a_node_tells_its_health_and_stops_when_asked(self):
        with Server(self.folder) as server:
            health = server.health()
            self.assertEqual(health["status"], "ok")
            code, _, errors = server.stop()
            self.assertEqual(code, 0, errors)

    def test_identity_survives_a_restart_and_a_kill(self):
        with Server(self.folder) as server:
            first = server.health()["node"]
            server.stop(signal.SIGINT)
        with Server(self.folder) as server:
            self.assertEqual(server.health()["node"], first)
            server.stop(signal.SIGKILL)
        with Server(self.folder, "--file-backend", "threads", "--cores", "1") as server:
            self.assertEqual(server.health()["node"], first)

    def test_an_idle_connection_does_not_hold_up_the_stop(self):
        with Server(self.folder) as server:
            with socket.create_connection(("127.0.0.1", server.port)) as idle:
                idle.sendall(b"GET /healthz HT")
                code, _, errors = server.stop()
                self.assertEqual(code, 0, errors)

    def test_a_folder_in_use_is_refused(self):
        with Server(self.folder):
            result = run("node", "--data", self.folder, *ANY_PORTS)
            self.assert_refused(result, self.folder, "locked")

    def test_a_busy_port_is_refused(self):
        with socket.create_server(("127.0.0.1", 0)) as busy:
            address = f"127.0.0.1:{busy.getsockname()[1]}"
            for option in ("--admin", "--cql", "--listen"):
                result = run("node", "--data", self.folder, *ANY_PORTS, option, address)
                self.assert_refused(result, address, "in use")

    def test_a_folder_that_cannot_be_written_is_refused(self):
        with open(os.path.join(self.scratch.name, "file"), "w") as file:
            below = os.path.join(file.name, "data")
        self.assert_refused(run("node", "--data", below, *ANY_PORTS), below)
        read_only = "/proc/helenus"
        self.assert_refused(run("node", "--data", read_only, *ANY_PORTS), read_only)

    def test_a_damaged_identity_is_refused_and_left_alone(self):
        with Server(self.folder) as server:
            server.stop()
        path = os.path.join(self.folder, "identity")
        with open(path, "r+b") as file:
            file.seek(20)
            file.write(b"\xff")
        with open(path, "rb") as file:
            damaged = file.read()
        result = run("node", "--data", self.folder, *ANY_PORTS)
        self.assert_refused(result, path, "corrupt")
        with open(path, "rb") as file:
            self.assertEqual(file.read(), damaged)

    def test_a_folder_of_another_release_is_refused_with_what_to_do(self):
        with Server(self.folder) as server:
            server.stop()
        path = os.path.join(self.folder, "identity")
        with open(path, "r+b") as file:
            file.seek(8)
            file.write(b"\x02")
        result = run("node", "--data", self.folder, *ANY_PORTS)
        self.assert_refused(result, path, "version 2 of its format", "with an empty folder")

    def test_bad_arguments_are_refused(self):
        self.assert_refused(run(), "helenus node")
        self.assert_refused(run("nodd"), "nodd")
        self.assert_refused(run("node", "--bogus"), "--bogus")
        self.assert_refused(run("node", "--admin", "localhost"), "--admin", "localhost")
        self.assert_refused(run("node", "--log", "loud"), "--log", "loud")
        self.assert_refused(run("node", "--file-backend", "tape"), "tape")

    def write_config(self, text):
        path = os.path.join(self.scratch.name, "helenus.yaml")
        with open(path, "w") as file:
            file.write(text)
        return path

    def test_a_configuration_file_is_read_and_the_command_line_wins(self):
        elsewhere = os.path.join(self.scratch.name, "elsewhere")
        path = self.write_config(f"data_directory: {elsewhere}\nadmin_address: 127.0.0.1:1\n")
        with Server(self.folder, "--config", path) as server:
            server.health()
        self.assertTrue(os.path.exists(os.path.join(self.folder, "identity")))
        self.assertFalse(os.path.exists(elsewhere))

    def test_a_bad_configuration_file_is_refused_with_its_line(self):
        path = self.write_config("cores: 1\n\npaint: red\n")
        self.assert_refused(run("node", "--config", path), f"{path}:3: ", "paint")
        self.assert_refused(run("node", "--config", path + "x"), path + "x")
        path = self.write_config("admin_address: 0.0.0.0:0\n")
        self.assert_refused(run("node", "--config", path), "admin_address", "admin_remote")

    def test_a_start_says_what_it_waits_for_and_ends_when_asked(self):
        with socket.create_server(("127.0.0.1", 0)) as free:
            nobody = f"127.0.0.1:{free.getsockname()[1]}"
        with socket.create_server(("127.0.0.1", 0)) as free:
            here = f"127.0.0.1:{free.getsockname()[1]}"
        process = subprocess.Popen(
            [HELENUS, "node", "--data", self.folder, *ANY_PORTS, "--listen", here]
            + ["--seeds", f"{here},{nobody}", "--log", "off"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        # A slow disk may be waited for first.
        line = "helenus: starting: "
        while line.startswith("helenus: starting: ") and "waits for " + nobody not in line:
            line = process.stderr.readline()
        self.assertIn(nobody, line)
        process.send_signal(signal.SIGTERM)
        output, errors = process.communicate(timeout=START_SECONDS_MAX)
        self.assertEqual((process.returncode, output), (0, ""), errors)

    def test_help_and_version_help(self):
        result = run("node", "--help")
        self.assertEqual(result.returncode, 0)
        for option in "config data cql listen seeds admin cores file-backend log".split():
            self.assertIn("--" + option, result.stdout)
        self.assertRegex(run("--version").stdout, r"^helenus \d+\.\d+\.\d+$")

    def assert_lost_output_is_told(self, *command):
        with open("/dev/full", "w") as full:
            result = subprocess.run(
                command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=START_SECONDS_MAX
            )
        self.assertEqual(result.returncode, 1)
        self.assertIn(": not all of the output could be written", result.stderr)

    def test_output_that_is_lost_is_an_error(self):
        with Server(self.folder) as server:
            self.assert_lost_output_is_told(
                HELENUS, "status", "--admin", f"127.0.0.1:{server.port}"
            )
            server.stop()
        self.assert_lost_output_is_told(HELENUS_SSTABLE, "--help")
        self.assert_lost_output_is_told(HELENUS_SSTABLE, "dump", GOLDEN_SSTABLE)
        dumped = subprocess.run(
            [HELENUS_SSTABLE, "dump", GOLDEN_SSTABLE], capture_output=True, timeout=60
        )
        self.assertEqual(dumped.returncode, 0, dumped.stderr)
        self.assertGreater(len(dumped.stdout), 0)


if __name__ == "__main__":
    HELENUS = sys.argv.pop(1)
    HELENUS_SSTABLE = sys.argv.pop(1)
    unittest.main(verbosity=2)
