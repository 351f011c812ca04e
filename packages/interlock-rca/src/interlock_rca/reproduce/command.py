"""Build the command that reproduces a failure: `pytest {test}`, with names from reports.

The names never become part of the shell's text. A placeholder becomes an environment variable,
which the shell expands to one argument and never reads as commands.
"""

import re
import shlex
from collections.abc import Callable, Mapping
from pathlib import PurePosixPath

import msgspec

from interlock.system.errors import UsageError
from interlock_rca.records import Failure

PLACEHOLDERS = {
    "test": "the test as its runner takes it: for Python a node id, else its name",
    "file": "the file of the test, from the top of the repository",
    "name": "the name of the test as it was reported",
    "class": "the class of the test as it was reported",
}
_PLACEHOLDER = re.compile(r"\{([A-Za-z_]+)\}")
_VARIABLE = "INTERLOCK_{}"
_LONGEST = 10_000


class ReproduceCommand(msgspec.Struct, frozen=True):
    """A shell line and the values of its placeholders."""

    line: str
    values: Mapping[str, str]

    @property
    def script(self) -> str:
        """Return the shell's text, the same for every test."""
        return _PLACEHOLDER.sub(_refer_to_variable, self.line)

    @property
    def variables(self) -> dict[str, str]:
        return {_VARIABLE.format(name.upper()): value for name, value in self.values.items()}

    @property
    def text(self) -> str:
        """Return the command with its values, as a person would type it."""
        return _PLACEHOLDER.sub(
            lambda found: (
                shlex.quote(self.values[found[1]]) if found[1] in self.values else found[0]
            ),
            self.line,
        )


def _refer_to_variable(found: re.Match[str]) -> str:
    name = found[1]
    return f'"${_VARIABLE.format(name.upper())}"' if name in PLACEHOLDERS else found[0]


def check_line(line: str, option: str) -> str:
    """Return the line. Raise UsageError if a placeholder is unknown, or quoted so that its value
    would not be one argument."""
    if len(line) > _LONGEST or "\0" in line:
        raise UsageError(f"{option}: the command must be text of at most {_LONGEST:,} characters")
    for found in _PLACEHOLDER.finditer(line):
        if found[1] not in PLACEHOLDERS and not line[: found.start()].endswith("$"):
            known = ", ".join(f"{{{name}}}" for name in PLACEHOLDERS)
            raise UsageError(f"{option}: {found[0]} is not known; known are {known}")
        if found[1] in PLACEHOLDERS and (quote := _find_open_quote(line[: found.start()])):
            raise UsageError(
                f"{option}: {found[0]} stands inside {quote}…{quote}; write it without quotes, it "
                "is always one argument"
            )
    return line


def _find_open_quote(text: str) -> str:
    """Return the quote that is open after the text, or ""."""
    quote, escaped = "", False
    for sign in text:
        if escaped:
            escaped = False
        elif sign == "\\" and quote != "'":
            escaped = True
        elif quote:
            quote = "" if sign == quote else quote
        elif sign in "'\"":
            quote = sign
    return quote


def fill_command(
    line: str, failure: Failure, find_file: Callable[[str], str]
) -> ReproduceCommand | str:
    """Return the command for a failure, or the reason why there is none. `find_file` returns the
    repository's file for a path or a module name, or ""."""
    file = _find_test_file(failure, find_file)
    found = {
        "test": _name_test(failure, file),
        "file": file,
        "name": failure.test_name,
        "class": failure.class_name,
    }
    used = {name: found[name] for name in found if f"{{{name}}}" in line}
    for name, value in used.items():
        if not value:
            return f"its report does not tell the {{{name}}} of the command"
        if "\0" in value or value.startswith("-"):
            return f"its {name} begins with a dash or holds a NUL, so the command is not given it"
    return ReproduceCommand(line, used)


def _find_test_file(failure: Failure, find_file: Callable[[str], str]) -> str:
    words = [failure.file, failure.code_ref.partition(":")[0]]
    words += _list_modules(failure.class_name)
    return next((found for word in words if word and (found := find_file(word))), "")


def _list_modules(class_name: str) -> list[str]:
    """Return the files that a dotted name may mean, the longest module first."""
    parts = class_name.split(".")
    return ["/".join(parts[:count]) + ".py" for count in range(len(parts), 0, -1)]


def _name_test(failure: Failure, file: str) -> str:
    """Return a Python test's node id, `tests/test_shop.py::TestCart::test_total[2]`."""
    name, parts = failure.test_name, failure.class_name.split(".")
    if not file.endswith(".py") or "::" in name or not name:
        return name
    stem = PurePosixPath(file).stem
    after = len(parts) - parts[::-1].index(stem) if stem in parts else -1
    classes = [each for each in (parts[after:] if failure.class_name else ()) if each]
    return "::".join([file, *classes, name])
