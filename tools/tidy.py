#!/usr/bin/env python3
"""Style as a test: the rules of CONTRIBUTING.md that a machine can check.

    tools/tidy.py                 every rule group
    tools/tidy.py includes tokens only these groups
    tools/tidy.py --list          the groups

Prints `file:line: check: what is wrong` for each finding and exits 1 if there is one. A finding
that is right as it stands has an entry in tools/tidy_allow.txt, with its reason; an entry that
excuses nothing is a finding itself.
"""

import argparse
import fnmatch
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from cpp_text import Source, blank

ALLOW_FILE = "tools/tidy_allow.txt"
INCLUDE_TABLE = "src/README.md"

LINE_LENGTH_MAX = 100
FUNCTION_LINES_MAX = 70
FILE_LINES_MAX = 800
TEST_FILE_LINES_MAX = 1200

FOLDERS_SKIPPED = {"build", "data", "node_modules", "__pycache__"}
HIDDEN_FOLDERS_SEEN = {".ci"}
FOLDERS_BESIDE_SRC = ("bench", "fuzz", "lab", "tests")
TEST_WORLD = "sim"


@dataclass(frozen=True)
class Finding:
    check: str
    path: str
    line: int
    message: str
    name: str = ""  # what an allow-list entry may name: a function, a token

    def __str__(self):
        return f"{self.path}:{self.line}: {self.check}: {self.message}"


class File:
    def __init__(self, root, path):
        self.path = path
        self.text = (root / path).read_text(encoding="utf-8", errors="replace")

    @cached_property
    def lines(self):
        return self.text.split("\n")

    @cached_property
    def source(self):
        return Source(self.text)

    @property
    def is_header(self):
        return self.path.endswith(".h")

    @property
    def is_cpp(self):
        return self.path.endswith((".h", ".cc"))

    @property
    def is_script(self):
        return self.path.endswith((".py", ".sh", ".cmake", "CMakeLists.txt")) or (
            self.text.startswith("#!")
        )

    @property
    def is_test(self):
        return re.search(r"_test(_support)?\.(h|cc|py)$", self.path) is not None

    @property
    def is_markdown(self):
        return self.path.endswith(".md")


class Tree:
    """The files a rule looks at: everything but build output, data and hidden folders."""

    def __init__(self, root):
        self.root = Path(root).resolve()
        self.files = {path: File(self.root, path) for path in sorted(self._paths())}

    def _paths(self):
        for folder, subfolders, names in os.walk(self.root):
            subfolders[:] = [
                name
                for name in subfolders
                if name not in FOLDERS_SKIPPED
                and (not name.startswith(".") or name in HIDDEN_FOLDERS_SEEN)
            ]
            for name in names:
                path = Path(folder, name)
                if path.is_file() and path.stat().st_size < 4 << 20:
                    yield path.relative_to(self.root).as_posix()

    def cpp(self):
        return [file for file in self.files.values() if file.is_cpp]

    def markdown(self):
        return [file for file in self.files.values() if file.is_markdown]


# ---------------------------------------------------------------- includes: who may see whom


class IncludeTable:
    """The table of src/README.md: folder, one line about it, the folders it may include.

    `every library` stands for all rows but the mains, whose line begins with "main". Tests may also
    include TEST_WORLD, the rooms of their own module, and whatever their folder reaches through
    others.
    """

    ROW = re.compile(r"^\|\s*`([\w/]+)`\s*\|([^|]*)\|([^|]*)\|\s*$")

    def __init__(self, text):
        self.lines = {}
        self.allowed = {}
        libraries, wildcards = set(), set()
        for number, line in enumerate(text.split("\n"), 1):
            if row := self.ROW.match(line):
                folder, about, may_include = row.groups()
                self.lines[folder] = number
                self.allowed[folder] = set(re.findall(r"`([\w/]+)`", may_include))
                if "every library" in may_include:
                    wildcards.add(folder)
                if not about.strip().startswith("main"):
                    libraries.add(folder)
        self.wildcards = wildcards
        for folder in wildcards:
            self.allowed[folder] |= libraries - {folder}
        self.reach = self._reach()

    def folder_of(self, path):
        """The innermost folder of the table that holds `path` (as written in an include)."""
        parts = path.split("/")[:-1]
        while parts:
            if "/".join(parts) in self.allowed:
                return "/".join(parts)
            parts.pop()
        return None

    def _reach(self):
        """Folder to all folders that it may see, through others too."""
        reach = {folder: set(allowed) for folder, allowed in self.allowed.items()}
        for middle in reach:
            for folder in reach:
                if middle in reach[folder]:
                    reach[folder] |= reach[middle]
        return reach

    def cycle(self):
        """A folder that may include itself by some way, or None."""
        return next((folder for folder in self.reach if folder in self.reach[folder]), None)

    def test_may_include(self, folder, target):
        return (
            target == TEST_WORLD
            or target.split("/")[0] == folder.split("/")[0]
            or target in self.reach[folder]
        )


def table_problems(table):
    if cyclic := table.cycle():
        yield Finding("include-table", INCLUDE_TABLE, table.lines[cyclic], f"{cyclic} sees itself")
    for folder, allowed in table.allowed.items():
        for unknown in sorted(allowed - set(table.allowed)):
            message = f"{folder} may include {unknown}, which has no row"
            yield Finding("include-table", INCLUDE_TABLE, table.lines[folder], message)


def include_problem(tree, table, file, folder, include):
    target = table.folder_of(include.path)
    if "/" not in include.path:
        return f'"{include.path}" does not name its folder'
    if f"src/{include.path}" not in tree.files and include.path not in tree.files:
        return f'"{include.path}" does not exist'
    if target is None:
        return f'"{include.path}" is in no folder of {INCLUDE_TABLE}'
    if file.is_test and table.test_may_include(folder, target):
        return None
    if target != folder and target not in table.allowed[folder]:
        return f"{folder} may not include {target} ({INCLUDE_TABLE})"
    return None


def check_includes(tree):
    readme = tree.files.get(INCLUDE_TABLE)
    if readme is None:
        yield Finding("include-table", INCLUDE_TABLE, 1, "missing")
        return
    table = IncludeTable(readme.text)
    yield from table_problems(table)
    used = {folder: set() for folder in table.allowed}
    for file in tree.cpp():
        inside = file.path.removeprefix("src/")
        if inside == file.path and file.path.split("/")[0] not in FOLDERS_BESIDE_SRC:
            continue
        folder = table.folder_of(inside)
        if folder is None:
            message = f"its folder has no row in {INCLUDE_TABLE}"
            yield Finding("include-table", file.path, 1, message)
            continue
        for include in file.source.includes:
            if not include.quoted:
                continue
            used[folder].add(table.folder_of(include.path))
            if problem := include_problem(tree, table, file, folder, include):
                yield Finding("include", file.path, include.line, problem, include.path)
        yield from check_own_header(tree, file, inside)
    yield from unused_grants(table, used)


def unused_grants(table, used):
    for folder, allowed in table.allowed.items():
        if folder in table.wildcards or not used[folder]:
            continue
        for target in sorted(allowed - used[folder]):
            message = f"{folder} may include {target} and does not: take the grant away"
            yield Finding("include-table", INCLUDE_TABLE, table.lines[folder], message)


def check_own_header(tree, file, inside):
    if file.is_header:
        if not re.search(r"^#pragma once$", file.text, re.MULTILINE):
            yield Finding("pragma-once", file.path, 1, "a header has #pragma once")
        return
    header = re.sub(r"\.cc$", ".h", file.path)
    if header not in tree.files:
        return
    first = file.source.includes[0].path if file.source.includes else "nothing"
    if first != inside.removesuffix(".cc") + ".h":
        message = f"includes {first} first, not its own header: only that proves it stands alone"
        yield Finding("own-header-first", file.path, 1, message)


# ---------------------------------------------------------------- lengths


def check_lengths(tree):
    for file in tree.files.values():
        if not (file.is_cpp or file.is_script):
            continue
        for number, line in enumerate(file.lines, 1):
            if len(line) > LINE_LENGTH_MAX:
                message = f"{len(line)} columns, {LINE_LENGTH_MAX} at most"
                yield Finding("line-length", file.path, number, message)
        lines_max = TEST_FILE_LINES_MAX if file.is_test else FILE_LINES_MAX
        if len(file.lines) - 1 > lines_max:
            message = f"{len(file.lines) - 1} lines, {lines_max} at most: split it by phase"
            yield Finding("file-length", file.path, 1, message)
        for function in file.source.functions() if file.is_cpp else ():
            if function.length > FUNCTION_LINES_MAX:
                message = f"{function.name}: {function.length} lines, {FUNCTION_LINES_MAX} at most"
                yield Finding(
                    "function-length", file.path, function.line, message, function.name
                )


# ---------------------------------------------------------------- tokens: what has one home


@dataclass(frozen=True)
class Ban:
    check: str
    pattern: str
    message: str
    homes: tuple = ()  # path patterns where it is at home
    where: str = "*"  # path pattern it is banned in
    excuse: str = r"(?!)"  # what is fine although the pattern matches inside it

    def applies_to(self, path):
        return fnmatch.fnmatch(path, self.where) and not any(
            fnmatch.fnmatch(path, home) for home in self.homes
        )


NATIVE = "src/runtime/native/*"

CODE_BANS = (
    Ban(
        "random-device",
        r"\brandom_device\b|\bgetrandom\b|\bgetentropy\b",
        "randomness comes from runtime::Random, so that a seed replays a run",
        (NATIVE,),
    ),
    Ban(
        "clock",
        r"_clock\s*::\s*now\b|\bclock_gettime\b|\bgettimeofday\b"
        r"|\btime\s*\(\s*(?:nullptr|NULL|0)\s*\)",
        "time comes from runtime::Clock, so that a simulated run has its own",
        (NATIVE, "bench/stopwatch.cc"),
    ),
    Ban(
        "thread",
        r"\bstd\s*::\s*(?:jthread|thread|async|(?:\w+_)?mutex|condition_variable(?:_any)?|"
        r"lock_guard|unique_lock|scoped_lock|shared_lock|this_thread|call_once)\b|\bthread_local\b|"
        r"\bpthread_\w+|\babsl\s*::\s*(?:Mutex|MutexLock|Notification|CondVar)\b",
        "a piece of state belongs to one core; threads and locks live in runtime/native",
        (NATIVE, "src/base/log_spdlog*"),
    ),
    Ban(
        "sleep",
        r"\b(?:usleep|nanosleep)\s*\(|\bsleep\s*\(\s*\d",
        "nothing sleeps: wait for the event itself, with a deadline",
        (NATIVE,),
    ),
    Ban(
        "raw-new",
        r"(?<!operator )\bnew\b(?!\s*\()|(?<!operator )(?<!= )\bdelete\b",
        "memory has an owner from the start: make_unique, a container, or placement new",
        ("src/runtime/stop_token.h",),
        excuse=r"\bunique_ptr<[^;{}]*>\s*\(\s*new\b",
    ),
    Ban("rand", r"\b(?:std\s*::\s*)?s?rand\s*\(", "use base::Prng with a seed"),
    Ban(
        "exception",
        r"\bthrow\b(?!\s*;)",
        "operating errors are values (base/result.h), programmer's errors ASSERT",
        where="src/*",
    ),
    Ban(
        "c-assert",
        r"(?<![\w.])assert\s*\(",
        "use ASSERT (base/assert.h): it stays on in production",
    ),
    Ban(
        "using-namespace",
        r"\busing\s+namespace\b(?!\s+[\w:]*literals\b)",
        "a header does not open namespaces for others",
        where="*.h",
    ),
    Ban("stream", r"\bstd\s*::\s*(?:cout|cerr|clog)\b", "print with fmt, log with base/log.h"),
)

INCLUDE_BANS = (
    Ban("stream", r"^iostream$", "print with fmt, log with base/log.h"),
    Ban(
        "operating-system",
        r"^(?:liburing|liburing/.*|pthread|poll|fcntl|unistd|dirent|signal)\.h$"
        r"|^(?:sys|net|netinet|arpa|linux)/.*$",
        "only runtime/native knows the operating system",
        (NATIVE, "*_test.cc", "src/base/assert.cc", "src/base/log_spdlog*")
        + ("src/runtime/address.cc",),
        where="src/*",
    ),
    Ban(
        "thread",
        r"^(?:thread|mutex|shared_mutex|condition_variable|future|latch|barrier|semaphore)$",
        "threads and locks live in runtime/native",
        (NATIVE, "src/base/log_spdlog*"),
    ),
    Ban("logging-library", r"^spdlog/", "log through base/log.h", ("src/base/log_spdlog*",)),
)

# Written so that this file does not match its own patterns.
TEXT_BANS = (
    ("marker", r"\b(?:TO" r"DO|FIX" r"ME|XX" r"X)\b", "finish it, or write it down elsewhere"),
    (
        "machine-path",
        r"(?<![\w.])/(?:home|root|work|Users)/",
        "a path of somebody's machine",
    ),
)


def check_tokens(tree):
    for file in tree.files.values():
        if file.is_cpp:
            yield from check_code_tokens(file)
            yield from check_system_includes(file)
        for check, pattern, message in TEXT_BANS:
            if check == "marker" and file.is_markdown:
                continue
            for number, line in enumerate(file.lines, 1):
                if match := re.search(pattern, line):
                    yield Finding(check, file.path, number, f"{match.group()}: {message}")


def check_code_tokens(file):
    for ban in CODE_BANS:
        if not ban.applies_to(file.path):
            continue
        code = re.sub(ban.excuse, blank, file.source.code)
        for match in re.finditer(ban.pattern, code):
            line = code.count("\n", 0, match.start()) + 1
            if file.lines[line - 1].lstrip().startswith("#include"):
                continue
            word = " ".join(match.group().split())
            yield Finding(ban.check, file.path, line, f"{word}: {ban.message}", word)


def check_system_includes(file):
    for include in file.source.includes:
        for ban in INCLUDE_BANS:
            if ban.applies_to(file.path) and re.search(ban.pattern, include.path):
                message = f"<{include.path}>: {ban.message}"
                yield Finding(ban.check, file.path, include.line, message, include.path)


# ---------------------------------------------------------------- comments

# A comment line that is a statement. An example inside a contract is indented by two or more
# blanks after the slashes and so never matches.
COMMENTED_OUT = re.compile(
    r"""^//\ ?(?!\ )(?:
        \}?\s*else\b.*\{ | \} | \}\s*//.* | \};
      | (?:if|for|while|switch)\s*\(.*\)\s*(?:\{|[^.]*;)
      | (?:return|co_return|co_await|co_yield|throw|delete)\b[^.]*;
      | (?:break|continue);
      | \#\s*(?:include|define|ifn?def|if|endif|else|pragma)\b.*
      | [\w:.\->\[\]]+\(.*\);
      | [\w:<>,*&\ ]+\ [\w.\->\[\]]+\ =\ .*;
      | [\w.\->\[\]]+\ [-+*/|&^]?=\ .*;
      | [\w:<>,*&~\ ]+\(.*\)\ (?:const\ |noexcept\ |override\ )*\{
      | (?:class|struct|namespace|enum|template)\b.*[{;>]
      | (?:std|base|runtime|auto|const|static|using|typedef)\b[^.]*[=(<].*;
    )\s*$""",
    re.VERBOSE,
)


def check_comments(tree):
    for file in tree.cpp():
        for comment in file.source.comments:
            text = comment.text.strip()
            if comment.alone and COMMENTED_OUT.match(text):
                message = f"commented-out code: {text}"
                yield Finding("commented-out", file.path, comment.line, message)
        if re.search(r"^\s*#\s*if\s+0\b", file.source.code, re.MULTILINE):
            yield Finding("commented-out", file.path, 1, "code switched off by #if 0")
        owns_contract = file.is_header or (
            not file.is_test and re.sub(r"\.cc$", ".h", file.path) not in tree.files
        )
        if owns_contract and not file.text.startswith("// "):
            message = "the first lines say what lives here and the model behind it"
            yield Finding("preamble", file.path, 1, message)


# ---------------------------------------------------------------- format


def check_format(tree):
    paths = [file.path for file in tree.cpp()]
    batches = [paths[start : start + 16] for start in range(0, len(paths), 16)]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for findings in pool.map(lambda batch: format_batch(tree.root, batch), batches):
            yield from findings


def format_batch(root, paths):
    command = ["clang-format-19", "--dry-run", "-Werror", *paths]
    try:
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return [Finding("format", ".clang-format", 1, "clang-format-19 is not installed")]
    seen = dict.fromkeys(re.findall(r"^(.+?):(\d+):\d+: error:", done.stderr, re.MULTILINE))
    first = {}
    for path, line in seen:
        first.setdefault(path, int(line))
    fix = "run tools/format"
    found = [Finding("format", path, line, f"differs: {fix}") for path, line in first.items()]
    if done.returncode != 0 and not found:
        found.append(Finding("format", paths[0], 1, done.stderr.strip() or "clang-format failed"))
    return found


# ---------------------------------------------------------------- documents

ADR_HEADINGS = ("Status", "Date", "Context", "Decision", "Alternatives considered", "Consequences")
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)|!\[[^\]]*\]\(([^)\s]+)\)")


def check_documents(tree):
    yield from check_folder_readmes(tree)
    records = [path for path in tree.files if re.match(r"docs/adr/[^/]+\.md$", path)]
    for path in records:
        yield from check_record(tree.files[path])
    for file in tree.markdown():
        yield from check_links(tree, file)
    for file in tree.cpp():
        yield from check_mentions(tree, file)


def check_folder_readmes(tree):
    table = IncludeTable(tree.files[INCLUDE_TABLE].text if INCLUDE_TABLE in tree.files else "")
    sources = [file.path[4:] for file in tree.cpp() if file.path.startswith("src/")]
    for folder in sorted({table.folder_of(path) for path in sources} - {None}):
        if f"src/{folder}/README.md" not in tree.files:
            message = "the folder has no README.md: purpose, types to read first, ownership"
            yield Finding("folder-readme", f"src/{folder}", 1, message)


def check_record(file):
    if not re.match(r"docs/adr/(README|\d{4}-[a-z0-9-]+)\.md$", file.path):
        yield Finding("adr", file.path, 1, "a record is named NNNN-what-it-decides.md")
    if file.path.endswith("README.md"):
        return
    headings = tuple(re.findall(r"^## (.+?)\s*$", file.text, re.MULTILINE))
    if headings != ADR_HEADINGS:
        message = f"its headings are not those of the template: {', '.join(ADR_HEADINGS)}"
        yield Finding("adr", file.path, 1, message)
    if not file.path.endswith("0000-template.md"):
        if not re.search(r"^## Date\s+\d{4}-\d{2}-\d{2}$", file.text, re.MULTILINE):
            yield Finding("adr", file.path, 1, "its date is not YYYY-MM-DD")


def check_links(tree, file):
    text = re.sub(r"```.*?```", blank, file.text, flags=re.DOTALL)
    text = re.sub(r"`[^`\n]*`", blank, text)
    for match in LINK.finditer(text):
        target = (match.group(1) or match.group(2)).split("#")[0]
        if not target or re.match(r"[a-z]+:", target):
            continue
        resolved = (tree.root / os.path.dirname(file.path) / target).resolve()
        if not resolved.exists():
            line = text.count("\n", 0, match.start()) + 1
            yield Finding("link", file.path, line, f"{target} does not exist")


def check_mentions(tree, file):
    """A comment may name a document by its path, and a record by `docs/adr/NNNN` alone."""
    for comment in file.source.comments:
        for mention in re.findall(r"\bdocs/[\w/.-]*\w", comment.text):
            if not any(path.startswith(mention) for path in tree.files):
                yield Finding("link", file.path, comment.line, f"{mention} does not exist")


# ---------------------------------------------------------------- the allow-list and the command

GROUPS = {
    "includes": check_includes,
    "lengths": check_lengths,
    "tokens": check_tokens,
    "comments": check_comments,
    "format": check_format,
    "documents": check_documents,
}
CHECKS_OF_GROUP = {
    "includes": {"include", "include-table", "own-header-first", "pragma-once"},
    "lengths": {"line-length", "function-length", "file-length"},
    "tokens": {ban.check for ban in CODE_BANS + INCLUDE_BANS}
    | {check for check, _, _ in TEXT_BANS},
    "comments": {"commented-out", "preamble"},
    "format": {"format"},
    "documents": {"folder-readme", "adr", "link"},
}


@dataclass(frozen=True)
class Allowance:
    line: int
    check: str
    path: str
    name: str  # "" excuses every finding of the check in that file

    def covers(self, finding):
        return (finding.check, finding.path) == (self.check, self.path) and (
            self.name in ("", finding.name)
        )


def read_allowances(text):
    """Lines of `check path [name]  # reason`; yields allowances, and findings for bad lines."""
    for number, line in enumerate(text.split("\n"), 1):
        entry, _, reason = line.partition("#")
        words = entry.split(maxsplit=2)
        if not words:
            continue
        known = any(words[0] in checks for checks in CHECKS_OF_GROUP.values())
        if len(words) < 2 or not known or not reason.strip():
            message = "not `check path [name]  # reason` with a check that exists"
            yield Finding("allow-list", ALLOW_FILE, number, message)
        else:
            yield Allowance(number, words[0], words[1], words[2].strip() if len(words) > 2 else "")


def run_groups(tree, names):
    """All findings of these groups that no entry of the allow-list covers, and stale entries."""
    entries = list(read_allowances(tree.files[ALLOW_FILE].text)) if ALLOW_FILE in tree.files else []
    allowances = [entry for entry in entries if isinstance(entry, Allowance)]
    open_findings = [entry for entry in entries if isinstance(entry, Finding)]
    used = set()
    for name in names:
        for finding in GROUPS[name](tree):
            covering = [entry for entry in allowances if entry.covers(finding)]
            used.update(covering)
            if not covering:
                open_findings.append(finding)
    checks_run = set().union(*(CHECKS_OF_GROUP[name] for name in names))
    for entry in allowances:
        if entry.check in checks_run and entry not in used:
            message = f"stale: nothing to excuse in {entry.path}"
            open_findings.append(Finding("allow-list", ALLOW_FILE, entry.line, message))
    return open_findings


def main():
    parser = argparse.ArgumentParser(description="Checks the style rules a machine can check.")
    parser.add_argument("groups", nargs="*", metavar="GROUP", help="default: all")
    parser.add_argument("--root", default=Path(__file__).resolve().parent.parent)
    parser.add_argument("--list", action="store_true", help="print the groups")
    arguments = parser.parse_args()
    if arguments.list:
        print("\n".join(GROUPS))
        return 0
    if unknown := [name for name in arguments.groups if name not in GROUPS]:
        parser.error(f"no group {unknown[0]}; there are: {' '.join(GROUPS)}")
    findings = run_groups(Tree(arguments.root), arguments.groups or list(GROUPS))
    for finding in findings:
        print(finding)
    print(f"{len(findings)} finding{'' if len(findings) == 1 else 's'}")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
