#!/usr/bin/env python3
"""The commands ./run, ./test, ./bench/run and ./lab/run in surroundings where something is wrong.

Each case runs a copy of the scripts in a folder of its own, with a PATH that holds the few real
tools they need and stand-ins for the rest: apt-get, sudo, id, cmake, ctest. A stand-in writes its
arguments to calls.log.
"""

import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SCRIPTS = (
    "run",
    "test",
    "bench/run",
    "lab/run",
    "tools/lib.sh",
    "tools/test_summary.py",
    "tools/three_nodes.sh",
    "tools/three_nodes.yaml",
)
REAL_TOOLS = (
    "bash cat comm dirname dpkg-query env flock mkdir nproc python3 rm sed setpriv setsid sleep "
    "sort tail tr".split()
)
NO_SUCH_PACKAGE = "helenus-test-no-such-package"

REPORT = """cat >"$report" <<'END'
<testsuite><testcase name="A" status="run"/></testsuite>
END
"""
CTEST = 'while (($#)); do [[ $1 == --output-junit ]] && report=$2; shift; done\n' + REPORT


class Commands(unittest.TestCase):
    def setUp(self):
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        for script in SCRIPTS:
            target = self.folder / "tree" / script
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / script, target)
        self.tree = self.folder / "tree"
        (self.folder / "bin").mkdir()
        for tool in REAL_TOOLS:
            (self.folder / "bin" / tool).symlink_to(shutil.which(tool, path=self.search_path()))
        self.packages("bash")
        self.stand_in("id", "echo 0")
        self.stand_in("apt-get")
        self.stand_in("cmake")
        self.stand_in("ctest", CTEST)

    @staticmethod
    def search_path():
        return "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

    def packages(self, *names, part="run"):
        listed = "".join(f"{name}  # why\n" for name in names)
        (self.tree / "tools/packages.txt").write_text(
            f"# the list\n\n[other]\n{NO_SUCH_PACKAGE}-either\n\n[{part}]  # a part\n{listed}",
            encoding="utf-8",
        )

    def stand_in(self, name, body=""):
        path = self.folder / "bin" / name
        text = f'#!{self.folder}/bin/bash\necho "{name} $*" >>"{self.folder}/calls.log"\n{body}\n'
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)

    def calls(self, name):
        log = self.folder / "calls.log"
        lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
        return [line.removeprefix(f"{name} ") for line in lines if line.startswith(f"{name} ")]

    def command(self, *arguments):
        environment = {"PATH": str(self.folder / "bin"), "HOME": str(self.folder)}
        return subprocess.run(
            arguments,
            cwd=self.tree,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    def assert_one_line(self, done, code, *words):
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)


class Packages(Commands):
    INSTALL = f"apt-get install -y --no-install-recommends {NO_SUCH_PACKAGE}"

    def setUp(self):
        super().setUp()
        self.packages("bash", NO_SUCH_PACKAGE)

    def test_without_rights_the_exact_line_is_printed(self):
        self.stand_in("id", "echo 1000")
        for script in ("./run", "./test", "./bench/run", "./lab/run"):
            done = self.command(script)
            self.assert_one_line(done, 2, f"as root run: apt-get update && {self.INSTALL}\n")
        self.assertEqual(self.calls("apt-get"), [])

    def test_root_installs_only_what_is_missing(self):
        self.assertEqual(self.command("./test").returncode, 0)
        wanted = ["-q update", self.INSTALL.removeprefix("apt-get ")]
        self.assertEqual(self.calls("apt-get"), wanted)

    def test_sudo_installs_for_others(self):
        self.stand_in("id", "echo 1000")
        self.stand_in("sudo", '"$@"')
        self.assertEqual(self.command("./test").returncode, 0)
        self.assertEqual(len(self.calls("sudo")), 2)
        self.assertEqual(len(self.calls("apt-get")), 2)

    def test_an_install_that_fails_is_told(self):
        self.stand_in("apt-get", "exit 100")
        self.assert_one_line(self.command("./test"), 2, "could not install", self.INSTALL)

    def test_running_needs_no_packages_of_tests(self):
        (self.tree / "build/release/bin").mkdir(parents=True)
        self.packages(NO_SUCH_PACKAGE, part="test")
        self.command("./run")
        self.assertEqual(self.calls("apt-get"), [])
        for script in ("./test", "./bench/run", "./lab/run"):
            self.command(script)
            self.assertIn(self.INSTALL.removeprefix("apt-get "), self.calls("apt-get"))

    def test_nothing_missing_asks_nobody(self):
        self.packages("bash")
        self.assertEqual(self.command("./test").returncode, 0)
        self.assertEqual(self.calls("apt-get"), [])


class Test(Commands):
    def test_help(self):
        for script in ("./run", "./test", "./bench/run", "./lab/run"):
            done = self.command(script, "--help")
            self.assertEqual(done.returncode, 0)
            self.assertTrue(done.stdout.startswith(f"usage: {script}"))
        self.assertEqual(self.calls("cmake"), [])

    def test_an_unknown_preset(self):
        for arguments in (["--preset", "fast"], ["--preset=fast"], ["--preset", "de"]):
            done = self.command("./test", *arguments)
            self.assert_one_line(done, 2, "dev asan tsan release fuzz")
        self.assert_one_line(self.command("./test", "--preset"), 2, "--preset needs a name")

    def test_every_preset_is_built_and_tested(self):
        done = self.command("./test")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.splitlines()[-1], "3 passed, 0 failed")
        presets = [call.split()[1] for call in self.calls("ctest")]
        self.assertEqual(presets, ["release", "asan", "tsan"])
        self.assertTrue((self.tree / "build/test-times.txt").exists())

    def test_what_the_sanitizers_run_is_not_run_without_them_too(self):
        self.command("./test")
        plain, memory, threads = self.calls("ctest")
        self.assertIn("--label-exclude ^(memory|long)$", plain)
        for call in (memory, threads):
            self.assertIn("--label-exclude ^(long)$", call)
        (built,) = [call for call in self.calls("cmake") if "tests-plain" in call]
        self.assertIn("--preset release", built)

    def test_a_preset_that_was_asked_for_runs_all_its_tests_but_the_long_ones(self):
        self.command("./test", "--preset", "dev")
        (call,) = self.calls("ctest")
        self.assertIn("--label-exclude ^(long)$", call)
        self.assertNotIn("tests-plain", "".join(self.calls("cmake")))
        self.command("./test", "--preset", "fuzz")
        self.assertNotIn("--label-exclude", self.calls("ctest")[-1])

    def test_a_long_run_adds_and_says_what(self):
        self.stand_in("ctest", f'echo "scale $HELENUS_TEST_SCALE"\n{CTEST}')
        done = self.command("./test", "--long")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("== long: adds the tests labelled long, 4 times the seeds", done.stdout)
        self.assertEqual(done.stdout.count("scale 4"), 4)
        calls = self.calls("ctest")
        presets = [call.split()[1] for call in calls]
        self.assertEqual(presets, ["release", "asan", "tsan", "fuzz"])
        self.assertIn("--label-exclude ^(memory)$", calls[0])
        self.assertNotIn("--label-exclude", "".join(calls[1:]))
        self.assertNotIn("scale 4", self.command("./test").stdout)

    def test_a_long_run_has_its_own_presets(self):
        for arguments in (["--long", "--preset", "dev"], ["--preset=dev", "--long"]):
            self.assert_one_line(self.command("./test", *arguments), 2, "leave --preset out")

    def test_only_a_long_run_may_have_slow_cases(self):
        self.stand_in("ctest", CTEST.replace('status="run"', 'status="run" time="100"'))
        done = self.command("./test", "--preset", "dev")
        self.assertEqual(done.returncode, 1)
        last = done.stdout.splitlines()
        self.assertIn("failed: A (dev): took 100.0 s, 60 s is the limit", last)
        self.assertEqual(self.command("./test", "--long").returncode, 0)

    def test_cases_of_an_earlier_run_are_not_counted(self):
        cases = self.tree / "build/dev/cases"
        cases.mkdir(parents=True)
        (cases / "A.json").write_text("[]", encoding="utf-8")
        done = self.command("./test", "--preset", "dev")
        self.assertEqual(done.stdout.splitlines()[-1], "1 passed, 0 failed")

    def test_arguments_pass_through(self):
        done = self.command("./test", "--preset", "asan", "-R", "a b", "-V")
        self.assertEqual(done.stdout.splitlines()[-1], "1 passed, 0 failed")
        (call,) = self.calls("ctest")
        self.assertTrue(call.startswith("--preset asan ") and call.endswith(" -R a b -V"), call)

    def test_a_preset_that_runs_no_test_is_a_failure(self):
        none = CTEST.replace('<testcase name="A" status="run"/>', "")
        self.stand_in("ctest", f'[[ $* == *tsan* ]] || {{ {CTEST}\nexit 0; }}\n{none}')
        done = self.command("./test")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("preset tsan ran no test", done.stdout.splitlines())
        self.assertEqual(done.stdout.splitlines()[-1], "2 passed, 0 failed")
        self.assertEqual(self.command("./test", "-R", "A").returncode, 0)
        self.assertEqual(self.command("./test", "--preset", "tsan", "-R", "A").returncode, 1)

    def test_a_failing_test(self):
        self.stand_in("ctest", CTEST.replace("run", "fail") + "exit 8")
        done = self.command("./test", "--preset", "dev")
        self.assertEqual(done.returncode, 1)
        self.assertIn("failed: A (dev)", done.stdout.splitlines())
        self.assertEqual(done.stdout.splitlines()[-1], "0 passed, 1 failed")

    def test_a_ctest_that_cannot_run(self):
        self.stand_in("ctest", "exit 1")
        self.assert_one_line(self.command("./test"), 1, "ctest could not run")

    def test_a_report_of_an_earlier_run_is_not_counted(self):
        (self.tree / "build/release").mkdir(parents=True)
        (self.tree / "build/release/tests.xml").write_text("<testsuite/>", encoding="utf-8")
        self.stand_in("ctest")
        self.assert_one_line(self.command("./test"), 1, "ctest could not run")

    def test_a_configuration_or_build_that_fails(self):
        self.stand_in("cmake", "exit 1")
        self.assert_one_line(self.command("./test"), 1, "configuring preset release failed")
        self.stand_in("cmake", "[[ $1 != --build ]]")
        self.assert_one_line(self.command("./test"), 1, "the build of preset release failed")

    def test_a_folder_that_cannot_be_written(self):
        (self.tree / "build").write_text("a file where the folder should be", encoding="utf-8")
        for script in ("./run", "./test", "./bench/run", "./lab/run"):
            self.assert_one_line(self.command(script), 2, "cannot write to the folder build")


class Run(Commands):
    def setUp(self):
        super().setUp()
        program = self.tree / "build/release/bin/helenus"
        program.parent.mkdir(parents=True)
        program.write_text(f'#!{self.folder}/bin/bash\necho "$@"\n', encoding="utf-8")
        program.chmod(0o755)

    def test_starts_a_node_in_the_default_folder(self):
        done = self.command("./run", "--nodes", "1", "--listen", "127.0.0.1:0")
        last = done.stdout.splitlines()[-1]
        self.assertEqual(last, "node --data data --listen 127.0.0.1:0", done.stderr)
        self.assertTrue((self.tree / "data").is_dir())

    def test_three_nodes_that_do_not_start_are_one_line_with_the_log(self):
        done = self.command("./run", "--log", "debug")
        self.assert_one_line(done, 2, "did not start: node --config", "its log is data/node")
        words = (self.tree / "data/node2.log").read_text(encoding="utf-8").split()
        for option, value in (
            ("--data", "data/node2"),
            ("--cql", "127.0.0.2:9042"),
            ("--admin", "127.0.0.2:7070"),
            ("--listen", "127.0.0.2:7000"),
            ("--log", "debug"),
        ):
            self.assertEqual(words[words.index(option) + 1], value)

    def test_three_nodes_take_other_ports_folders_and_settings(self):
        self.command("./run", "--data=else where", "--ports", "1,2,3", "--config=mine.yaml")
        words = (self.tree / "else where/node3.log").read_text(encoding="utf-8")
        self.assertIn("--listen 127.0.0.3:3 --cql 127.0.0.3:1 --admin 127.0.0.3:2", words)
        self.assertIn("--config mine.yaml", words)
        self.assertNotIn("three_nodes.yaml", words)

    def test_one_of_three_is_started_alone(self):
        done = self.command("./run", "--node", "2")
        self.assertIn("--data data/node2 --listen 127.0.0.2:7000", done.stdout.splitlines()[-1])

    def test_what_a_node_alone_has_kept_is_pointed_out(self):
        (self.tree / "data").mkdir()
        (self.tree / "data/identity").write_text("", encoding="utf-8")
        self.assertIn("./run --nodes 1 starts it", self.command("./run").stdout)

    def test_bad_numbers_and_options_that_do_not_fit_are_one_line(self):
        for arguments, word in (
            (("--nodes", "2"), "--nodes is 1 or 3"),
            (("--nodes",), "--nodes needs a value"),
            (("--node=4",), "--node is 1, 2 or 3"),
            (("--ports", "9042"), "three numbers"),
            (("--nodes=1", "--ports", "1,2,3"), "for three nodes"),
            (("--cql", "127.0.0.1:1"), "--cql is for a node alone"),
        ):
            self.assert_one_line(self.command("./run", *arguments), 2, word)

    def test_configures_without_tests_and_shows_progress(self):
        self.stand_in("cmake", 'echo "status $NINJA_STATUS"')
        done = self.command("./run")
        configured, built = self.calls("cmake")
        self.assertEqual(configured, "--preset release -DHELENUS_TESTS=OFF")
        self.assertEqual(built, "--build --preset release --target helenus")
        self.assertIn("status [%f/%t %p]", done.stdout)

    def test_configures_only_when_the_build_cannot_do_it_itself(self):
        presets = self.tree / "CMakePresets.json"
        for path in (presets, self.tree / "build/release/build.ninja"):
            path.write_text("", encoding="utf-8")
        os.utime(presets, (1, 1))
        self.command("./run")
        self.assertEqual(self.calls("cmake"), ["--build --preset release --target helenus"])
        os.utime(presets)
        os.utime(self.tree / "build/release/build.ninja", (1, 1))
        self.command("./run")
        self.assertEqual(len(self.calls("cmake")), 3)

    def test_takes_another_folder(self):
        done = self.command("./run", "--nodes=1", "--data", "elsewhere")
        self.assertEqual(done.stdout.splitlines()[-1], "node --data elsewhere")
        self.assertFalse((self.tree / "data").exists())

    def test_a_data_folder_that_cannot_be_written(self):
        (self.tree / "data").write_text("", encoding="utf-8")
        self.assert_one_line(self.command("./run"), 2, "cannot write to the folder data")


class Bench(Commands):
    def setUp(self):
        super().setUp()
        targets = 'printf "all: phony\\nbench-a: phony\\n"'
        self.stand_in("cmake", f'[[ "$*" == *help* ]] && {targets}; true')

    def test_lists_the_benchmarks(self):
        self.assertEqual(self.command("./bench/run").stdout.splitlines()[-1], "a")

    def test_an_unknown_benchmark(self):
        self.assert_one_line(self.command("./bench/run", "b"), 2, "no benchmark b; there are: a")

    def test_the_name_comes_first(self):
        self.assert_one_line(self.command("./bench/run", "--quick"), 2, "name comes first")


if __name__ == "__main__":
    unittest.main()
