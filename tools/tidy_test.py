#!/usr/bin/env python3
"""Every rule of tidy.py is shown to fail on a bad snippet and to pass on a good one."""

import tempfile
import unittest
from pathlib import Path

import tidy
from cpp_text import Source

TABLE = """
| Folder | What it is | May include |
|---|---|---|
| `base` | ground | – |
| `runtime` | interfaces | `base` |
| `runtime/native` | the machine | `base` `runtime` |
| `bench` | main: speed | every library |
| `sim` | main: simulator | `base` |
"""
README = "# A folder\n"
CC = "src/base/x.cc"


def findings(group, files, allow=""):
    """What `group` finds in a tree of these files beside a sound include table."""
    tree = {"src/README.md": TABLE, "src/base/README.md": README, tidy.ALLOW_FILE: allow, **files}
    with tempfile.TemporaryDirectory() as folder:
        for path, text in tree.items():
            target = Path(folder, path)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
        return tidy.run_groups(tidy.Tree(folder), [group])


def checks(group, files, allow=""):
    return [finding.check for finding in findings(group, files, allow)]


class Includes(unittest.TestCase):
    def test_an_arrow_the_table_grants_passes(self):
        files = {
            "src/base/a.h": "#pragma once\n",
            "src/runtime/b.h": '#pragma once\n#include "base/a.h"\n#include "runtime/c.h"\n',
            "src/runtime/c.h": "#pragma once\n#include <vector>\n",
            "src/runtime/native/d.cc": '#include "base/a.h"\n#include "runtime/b.h"\n',
            "bench/e.cc": '#include "runtime/native/f.h"\n',
            "src/runtime/native/f.h": "#pragma once\n",
        }
        self.assertEqual(checks("includes", files), [])

    def test_an_arrow_upward_fails(self):
        files = {
            "src/base/a.h": '#pragma once\n#include "runtime/b.h"\n',
            "src/runtime/b.h": "#pragma once\n",
        }
        (finding,) = findings("includes", files)
        self.assertEqual((finding.path, finding.line), ("src/base/a.h", 2))

    def test_an_inner_folder_is_not_its_outer_one(self):
        files = {
            "src/base/a.h": "#pragma once\n",
            "src/runtime/b.cc": '#include "base/a.h"\n#include "runtime/native/f.h"\n',
            "src/runtime/native/f.h": "#pragma once\n",
        }
        self.assertEqual(checks("includes", files), ["include"])

    def test_a_grant_that_nobody_uses_fails(self):
        files = {
            "src/base/a.h": "#pragma once\n",
            "src/runtime/b.h": "#pragma once\n",
            "src/runtime/native/d.cc": '#include "runtime/b.h"\n',
        }
        (finding,) = findings("includes", files)
        self.assertEqual((finding.check, finding.path), ("include-table", "src/README.md"))
        files["src/runtime/native/e.cc"] = '#include "base/a.h"\n'
        self.assertEqual(checks("includes", files), [])

    def test_mains_never_include_one_another(self):
        files = {"bench/e.cc": '#include "sim/s.h"\n', "src/sim/s.h": "#pragma once\n"}
        self.assertEqual(checks("includes", files), ["include"])

    def test_only_tests_may_use_the_simulator(self):
        world = {"src/sim/s.h": "#pragma once\n", "src/base/a.h": "#pragma once\n"}
        for name in ("x_test.cc", "x_test_support.h"):
            text = '#pragma once\n#include "base/a.h"\n#include "sim/s.h"\n'
            self.assertEqual(checks("includes", {f"src/runtime/{name}": text, **world}), [])
        files = {"src/runtime/x.cc": '#include "base/a.h"\n#include "sim/s.h"\n', **world}
        self.assertEqual(checks("includes", files), ["include"])

    def test_a_folder_without_a_row_fails(self):
        self.assertEqual(checks("includes", {"src/misc/a.cc": ""}), ["include-table"])

    def test_an_include_without_its_folder_or_of_nothing_fails(self):
        files = {CC: '#include "a.h"\n#include "base/none.h"\n', "src/base/a.h": "#pragma once\n"}
        self.assertEqual(checks("includes", files), ["include", "include"])

    def test_an_include_in_a_comment_or_a_string_does_not_count(self):
        text = '// #include "a.h"\n/*\n#include "a.h"\n*/\nauto x = R"(\n#include "a.h"\n)";\n'
        self.assertEqual(checks("includes", {CC: text}), [])

    def test_a_table_with_a_cycle_or_an_unknown_folder_fails(self):
        cyclic = TABLE.replace("| ground | – |", "| ground | `runtime` `nowhere` |")
        self.assertEqual(checks("includes", {"src/README.md": cyclic}), ["include-table"] * 2)

    def test_a_source_includes_its_own_header_first(self):
        good = {"src/base/x.h": "#pragma once\n", CC: '#include "base/x.h"\n#include <map>\n'}
        bad = {"src/base/x.h": "#pragma once\n", CC: '#include <map>\n#include "base/x.h"\n'}
        self.assertEqual(checks("includes", good), [])
        self.assertEqual(checks("includes", bad), ["own-header-first"])

    def test_a_header_has_pragma_once(self):
        self.assertEqual(checks("includes", {"src/base/x.h": "int x();\n"}), ["pragma-once"])


class Lengths(unittest.TestCase):
    @staticmethod
    def function(lines, head="int f(int a)"):
        return head + " {\n" + "  a();\n" * (lines - 2) + "}\n"

    def test_a_line_of_100_columns_passes_and_one_of_101_fails(self):
        self.assertEqual(checks("lengths", {CC: "/" * 100 + "\n"}), [])
        self.assertEqual(checks("lengths", {CC: "/" * 101 + "\n"}), ["line-length"])
        self.assertEqual(checks("lengths", {"tools/x.sh": "#" * 101 + "\n"}), ["line-length"])

    def test_a_function_of_70_lines_passes_and_one_of_71_fails(self):
        self.assertEqual(checks("lengths", {CC: self.function(70)}), [])
        self.assertEqual(checks("lengths", {CC: self.function(71)}), ["function-length"])

    def test_functions_are_seen_wherever_they_stand(self):
        heads = [
            "template <template <class> class F, class T = Map<int, int>>\nvoid f(T t)",
            "TEST(Suite, Case)",
            "Name::Name(int a) : first_{a}, second_(a)",
            "[[nodiscard]] auto operator()(int x) const -> int",
        ]
        for head in heads:
            text = "namespace a {\nstruct B { int c{1}; };\n" + self.function(80, head) + "}\n"
            self.assertEqual(checks("lengths", {CC: text}), ["function-length"], head)

    def test_a_test_is_called_by_its_name(self):
        (finding,) = findings("lengths", {CC: self.function(71, "TEST(Suite, Case)")})
        self.assertEqual(finding.name, "Suite.Case")

    def test_classes_namespaces_and_tables_may_be_longer(self):
        members = "  int member_;\n  int get() { return 1; }\n" * 60
        table = "constexpr int kTable[] = {\n" + "  1,\n" * 100 + "};\n"
        text = "namespace a {\nclass alignas(64) B : C {\n public:\n" + members + "};\n" + table
        self.assertEqual(checks("lengths", {CC: text}), [])

    def test_a_file_has_800_lines_and_a_test_1200(self):
        self.assertEqual(checks("lengths", {CC: "\n" * 800}), [])
        self.assertEqual(checks("lengths", {CC: "\n" * 801}), ["file-length"])
        self.assertEqual(checks("lengths", {"src/base/x_test.cc": "\n" * 1200}), [])
        self.assertEqual(checks("lengths", {"src/base/x_test.cc": "\n" * 1201}), ["file-length"])


class Tokens(unittest.TestCase):
    def assert_banned(self, check, *snippets, path=CC):
        for snippet in snippets:
            self.assertEqual(checks("tokens", {path: snippet + "\n"}), [check], snippet)

    def assert_fine(self, *snippets, path=CC):
        for snippet in snippets:
            self.assertEqual(checks("tokens", {path: snippet + "\n"}), [], snippet)

    def test_randomness_and_clocks_have_one_home(self):
        self.assert_banned("random-device", "std::random_device device;")
        self.assert_banned(
            "clock",
            "auto t = std::chrono::steady_clock::now();",
            "clock_gettime(CLOCK_MONOTONIC, &t);",
            "auto t = time(nullptr);",
        )
        self.assert_fine("auto t = system_clock::now();", path="src/runtime/native/clock.cc")
        self.assert_fine("auto t = clock.now();", "using Clock = std::chrono::steady_clock;")
        self.assert_banned("rand", "int x = rand();", "srand(1);")

    def test_threads_and_locks_have_one_home(self):
        self.assert_banned(
            "thread",
            "std::thread t;",
            "std::jthread t;",
            "std::mutex m;",
            "std::shared_mutex m;",
            "thread_local int x;",
            "#include <mutex>",
            "std::this_thread::yield();",
        )
        self.assert_fine("std::thread t;", "#include <thread>", path="src/runtime/native/core.cc")
        self.assert_fine("std::atomic<int> count;", "co_await sleep_for(runtime, 3ms);")
        self.assert_banned("sleep", "usleep(3);", "sleep(1);")

    def test_memory_has_an_owner_from_the_start(self):
        self.assert_banned("raw-new", "auto* x = new Thing(1);", "delete x;", "delete[] x;")
        self.assert_fine(
            "::new (memory) Thing(1);",
            "Thing(const Thing&) = delete;",
            "void* operator new(std::size_t size);",
            "::operator delete(this);",
            "#include <new>",
            "return std::unique_ptr<Thing>(new Thing(1));",
            "int renewed = 1;  // a new word",
        )

    def test_errors_are_values(self):
        self.assert_banned("exception", "throw std::runtime_error(message);")
        self.assert_fine("throw Failure();", path="bench/x.cc")
        self.assert_fine("try { throw; } catch (const Failure& failure) {}")
        self.assert_banned("c-assert", "assert(x > 0);")
        self.assert_fine("ASSERT(x > 0);", "static_assert(x > 0);")

    def test_only_runtime_native_knows_the_operating_system(self):
        self.assert_banned("operating-system", "#include <unistd.h>", "#include <sys/epoll.h>")
        self.assert_fine("#include <sys/epoll.h>", path="src/runtime/native/loop.cc")
        self.assert_banned("stream", "#include <iostream>", 'std::cout << "x";')
        self.assert_banned("logging-library", "#include <spdlog/spdlog.h>")
        self.assert_fine("#include <spdlog/spdlog.h>", path="src/base/log_spdlog.cc")

    def test_comments_and_literals_are_not_code(self):
        self.assert_fine('auto text = "std::thread, new";', "// std::thread, new", "'\"'; 1'0")

    def test_a_header_opens_no_namespace(self):
        self.assert_banned("using-namespace", "using namespace std;", path="src/base/x.h")
        self.assert_fine("using namespace std::chrono_literals;", path="src/base/x.h")
        self.assert_fine("using namespace std;")

    def test_nothing_unfinished_and_no_path_of_a_machine(self):
        self.assert_banned("marker", "// TO" "DO: later", "// FIX" "ME")
        self.assert_banned("machine-path", "// see /ho" "me/me/notes")
        self.assert_fine("// at work/home or https://example.org/home/x")


class Comments(unittest.TestCase):
    PREAMBLE = "// What lives here.\n"

    def test_commented_out_code_fails(self):
        for line in (
            "// run(a, b);",
            "//run(a, b);",
            "// int x = 3;",
            "// x += 3;",
            "// return x;",
            "// if (x > 3) {",
            "// }",
            "// } else {",
            "// for (auto& x : all) touch(x);",
            "// #include <map>",
            "// void f(int a) const {",
            "// std::vector<int> all(3);",
            "// node->stop();",
        ):
            text = self.PREAMBLE + "\n" + line + "\n"
            self.assertEqual(checks("comments", {CC: text}), ["commented-out"], line)
        text = self.PREAMBLE + "#if 0\nint x;\n#endif\n"
        self.assertEqual(checks("comments", {CC: text}), ["commented-out"])

    def test_prose_and_examples_pass(self):
        for line in (
            "// It is a slice of memory;",
            "// Everything waits for stop();",
            "// If x is empty, nothing happens.",
            "// returns the number of bytes; see above",
            "//   Decoder in(bytes);",
            "//   if (x) {",
            "// a <= b, and so on;",
            "// new actor id: dots are never minted twice;",
            "int x = f();  // g();",
        ):
            text = self.PREAMBLE + "\n" + line + "\n"
            self.assertEqual(checks("comments", {CC: text}), [], line)

    def test_a_file_begins_with_what_lives_in_it(self):
        header = "src/base/x.h"
        self.assertEqual(checks("comments", {header: "#pragma once\n"}), ["preamble"])
        self.assertEqual(checks("comments", {CC: "#include <map>\n"}), ["preamble"])
        files = {header: self.PREAMBLE, CC: "\n", "src/base/x_test.cc": "\n"}
        self.assertEqual(checks("comments", files), [])


class Format(unittest.TestCase):
    def test_clang_format_decides(self):
        style = {".clang-format": "BasedOnStyle: Google\n"}
        self.assertEqual(checks("format", {**style, CC: "int x = 1;\n"}), [])
        self.assertEqual(checks("format", {**style, CC: "int x=1 ;\n\n\n"}), ["format"])


class Documents(unittest.TestCase):
    RECORD = "# 1. A\n\n" + "".join(
        f"## {heading}\n{'2026-11-15' if heading == 'Date' else 'text'}\n\n"
        for heading in tidy.ADR_HEADINGS
    )

    def test_a_folder_with_code_has_a_readme(self):
        self.assertEqual(checks("documents", {CC: ""}), [])
        self.assertEqual(checks("documents", {"src/runtime/x.cc": ""}), ["folder-readme"])
        self.assertEqual(checks("documents", {"src/base/inner/x.cc": ""}), [])

    def test_a_record_has_the_headings_of_the_template(self):
        good = {"docs/adr/0001-a-choice.md": self.RECORD}
        self.assertEqual(checks("documents", good), [])
        for path, text in (
            ("docs/adr/0001-a-choice.md", self.RECORD.replace("## Decision", "## Choice")),
            ("docs/adr/0001-a-choice.md", self.RECORD.replace("2026-11-15", "today")),
            ("docs/adr/choice.md", self.RECORD),
        ):
            self.assertEqual(checks("documents", {path: text}), ["adr"])

    def test_relative_links_resolve(self):
        links = "[a](b.md#part) [c](../src/README.md) [d](https://example.org) `[e](no.md)`\n"
        self.assertEqual(checks("documents", {"docs/a.md": links, "docs/b.md": "# B\n"}), [])
        self.assertEqual(checks("documents", {"docs/a.md": "[a](gone.md)\n"}), ["link"])


    def test_documents_named_in_comments_exist(self):
        record = {"docs/adr/0001-a-choice.md": self.RECORD}
        for mention in ("docs/adr/0001.", "docs/adr/0001-a-choice.md", "docs/adr/"):
            self.assertEqual(checks("documents", {CC: f"// See {mention}\n", **record}), [])
        self.assertEqual(checks("documents", {CC: "// See docs/adr/0002.\n", **record}), ["link"])


class AllowList(unittest.TestCase):
    LONG = Lengths.function(71)

    def test_an_entry_excuses_what_it_names(self):
        for name in ("f", ""):
            entry = f"function-length src/base/x.cc {name} # a table"
            self.assertEqual(checks("lengths", {CC: self.LONG}, entry), [])

    def test_an_entry_for_another_function_does_not_help_and_is_stale(self):
        entry = "function-length src/base/x.cc g  # a table"
        expected = ["function-length", "allow-list"]
        self.assertEqual(checks("lengths", {CC: self.LONG}, entry), expected)

    def test_a_stale_entry_fails_in_its_own_group_only(self):
        entry = "line-length src/base/x.cc  # a reason"
        self.assertEqual(checks("lengths", {CC: ""}, entry), ["allow-list"])
        self.assertEqual(checks("tokens", {CC: ""}, entry), [])

    def test_an_entry_needs_a_known_check_and_a_reason(self):
        for entry in ("line-length src/x.cc", "line-lenght src/x.cc  # why", "line-length  # why"):
            self.assertEqual(checks("tokens", {}, entry), ["allow-list"], entry)


class Groups(unittest.TestCase):
    def test_every_group_names_its_checks(self):
        self.assertEqual(list(tidy.GROUPS), list(tidy.CHECKS_OF_GROUP))


class Lexer(unittest.TestCase):
    def test_code_keeps_its_lines(self):
        text = 'a /* x\ny */ "s//" R"z(\n)" )z" // c \\\n d\n\'"\' 1\'000 b\n'
        source = Source(text)
        self.assertEqual(source.code.count("\n"), text.count("\n"))
        self.assertEqual("".join(source.code.split()), "a\"\"\"\"''1'000b")

    def test_odd_input_is_no_error(self):
        for text in ("}", "{{{", '"', "/*", "R\"(", "#include", "'"):
            Source(text).functions()


if __name__ == "__main__":
    unittest.main()
