"""C++ source as text: enough of a lexer to tell code from comments and to find function bodies.

Not a parser. It knows comments, literals, preprocessor lines and braces, which is what the rules
of tidy.py need; it never fails on odd input, it only sees less.
"""

import re
from dataclasses import dataclass

_TOKEN = re.compile(
    r"""
    (?P<line_comment> //(?:\\\n|[^\n])* )
  | (?P<block_comment> /\*.*?\*/ )
  | (?P<raw_string> (?:u8|[uUL])?R"(?P<delimiter>[^()\\\s]{0,16})\(.*?\)(?P=delimiter)" )
  | (?P<string> "(?:\\.|[^"\\\n])*" )
  | (?P<number> \b\d(?:'?[\w.])* )
  | (?P<character> '(?:\\.|[^'\\\n])+' )
    """,
    re.DOTALL | re.VERBOSE,
)
_DIRECTIVE = re.compile(r"^[ \t]*#(?:\\\n|[^\n])*", re.MULTILINE)
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(["<])([^">\n]+)[">]', re.MULTILINE)
_TRANSPARENT = re.compile(r"(?:inline\s+|typedef\s+)*(?:namespace|class|struct|union|enum)\b")
_LINKAGE_BLOCK = re.compile(r'extern\s*"\s*"\s*$')
_ACCESS_LABEL = re.compile(r"(?:(?:public|protected|private)\s*:(?!:)\s*)+")
_TEST_CASE = re.compile(r"[A-Z_]+\(\s*(\w+),\s*(\w+)")
_NAME = re.compile(r"([\w:~]+|operator\s*\S+)\s*\(")


@dataclass(frozen=True)
class Comment:
    line: int
    text: str  # as written, with its slashes
    alone: bool  # nothing but blanks before it on its line


@dataclass(frozen=True)
class Include:
    line: int
    path: str
    quoted: bool


@dataclass(frozen=True)
class Function:
    name: str
    line: int  # of the first word of its declaration
    length: int  # lines up to and including the closing brace


def blank(match):
    """What matched, as blanks: for re.sub where lines and columns must stay."""
    return re.sub(r"[^\n]", " ", match.group())


def _line_of(text, offset):
    return text.count("\n", 0, offset) + 1


class Source:
    """One file. `code` has the same lines as the file, comments and literals blanked out."""

    def __init__(self, text):
        self.text = text
        self.comments = []
        pieces = []
        end = 0
        for match in _TOKEN.finditer(text):
            if match.lastgroup == "number":
                continue
            pieces.append(text[end : match.start()])
            end = match.end()
            if match.group("line_comment") or match.group("block_comment"):
                self._keep_comment(match)
                pieces.append(blank(match))
            else:
                quote = match.group()[-1]
                pieces.append(quote + blank(match)[2:] + quote)
        pieces.append(text[end:])
        self.code = "".join(pieces)
        self.includes = [
            Include(_line_of(text, match.start(2)), match.group(2), match.group(1) == '"')
            for match in _INCLUDE.finditer(text)
            if "include" in self.code[match.start() : match.start(1)]
        ]

    def _keep_comment(self, match):
        line_start = self.text.rfind("\n", 0, match.start()) + 1
        alone = self.text[line_start : match.start()].strip() == ""
        first = _line_of(self.text, match.start())
        for number, line in enumerate(match.group().split("\n")):
            self.comments.append(Comment(first + number, line, alone))

    def functions(self):
        """Every function body, outermost only: a lambda counts with the function around it."""
        code = _DIRECTIVE.sub(blank, self.code)
        found = []
        scopes = []  # True for a namespace, class or enum; False for anything else
        head_start = 0  # where the declaration that may open a body begins
        for match in re.finditer(r"[{};]", code):
            offset = match.start()
            in_body = False in scopes
            if match.group() == "{":
                transparent = not in_body and _opens_scope(code[head_start:offset])
                scopes.append(transparent)
                if transparent:
                    head_start = offset + 1
                elif not in_body:
                    head = code[head_start:offset]
            elif match.group() == "}":
                if scopes:
                    scopes.pop()
                # In `Name() : first_{1}, second_{2} {` the declaration goes on after a brace.
                goes_on = in_body and re.match(r"\s*[,{]", code[offset + 1 : offset + 200])
                if False not in scopes and not goes_on:
                    if in_body:
                        found.extend(_function(code, head, head_start, offset))
                    head_start = offset + 1
            elif not in_body:
                head_start = offset + 1
        return found


def _declaration(head):
    """The head of a body without access labels, template parameters and attributes before it."""
    head = _ACCESS_LABEL.sub("", head.strip(), count=1).strip()
    while match := re.match(r"template\s*<|\[\[|alignas\s*\(|requires\s*\(", head):
        head = head[_matching_end(head, match.end() - 1) :].strip()
    return head


def _matching_end(text, start):
    """The offset after the bracket that closes the one at `start`."""
    opening = text[start]
    closing = {"<": ">", "(": ")", "[": "]"}[opening]
    depth = 0
    for offset in range(start, len(text)):
        if text[offset] == opening:
            depth += 1
        elif text[offset] == closing and text[offset - 1] not in "-=":
            depth -= 1
            if depth == 0:
                return offset + (2 if opening == "[" else 1)
    return len(text)


def _opens_scope(head):
    declaration = _declaration(head)
    return bool(_TRANSPARENT.match(declaration) or _LINKAGE_BLOCK.match(declaration))


def _function(code, head, start, end):
    declaration = _declaration(head)
    if head.rstrip().endswith("=") or "(" not in declaration:
        return []
    first = _line_of(code, start + len(head) - len(head.lstrip()))
    if test := _TEST_CASE.match(declaration):
        name = f"{test.group(1)}.{test.group(2)}"
    else:
        found = _NAME.search(declaration)
        name = found.group(1) if found else "?"
    return [Function(name, first, _line_of(code, end) - first + 1)]
