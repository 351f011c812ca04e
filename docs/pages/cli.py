"""The reference pages of the command line, from verbs, options and exit codes as declared."""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import typer

from docs.pages.python import describe_fields
from interlock.cli.app import ExitCode, app
from interlock.cli.verbs import group_verbs
from interlock_epic.status import list_exit_codes

_HEAD = """\
# Command line reference

Made by `make docs` from the command line itself: every verb, argument and option. See also
[exit codes](exit-codes.md) and [interlock.toml](settings.md), where a project keeps its defaults.

Every verb accepts `--help`. These options mean the same wherever a verb lists them under *Also*:

"""
_SHARED_BY: Final = 4
"""The number of verbs from which on an option is explained once, at the top."""
_EXIT_CODES_HEAD = """\
# Exit codes

Made by `make docs` from the code itself.

| code | name | meaning |
|---|---|---|
"""
_EPIC_HEAD = """
`interlock epic run` and `interlock epic resume` tell apart why an epic stopped:

| code | outcome | meaning |
|---|---|---|
"""


def render_cli_page() -> str:
    root = typer.main.get_command(app)
    groups = [
        (group, [verb for name in names for verb in _list_verbs(root, name)])
        for group, names in group_verbs()
    ]
    counts = Counter(row for _, verbs in groups for verb in verbs for row in verb.rows)
    shared = {
        row for row, count in counts.items() if count >= _SHARED_BY and row[0].startswith("-")
    }
    head = _HEAD + "".join(f"- `{name}`: {about}\n" for name, about in sorted(shared))
    parts = [head]
    for group, verbs in groups:
        parts += [f"## {group}\n", *(_render_verb(verb, shared) for verb in verbs)]
    return "\n".join(parts)


def render_exit_codes_page() -> str:
    texts = describe_fields(ExitCode)
    rows = [f"| {code.value} | `{code.name}` | {texts[code.name][1]} |" for code in ExitCode]
    epic = [
        f"| {code} | `{outcome}` | {meaning} |"
        for outcome, code, meaning in sorted(list_exit_codes(), key=lambda row: row[1])
    ]
    return _EXIT_CODES_HEAD + "\n".join(rows) + "\n" + _EPIC_HEAD + "\n".join(epic) + "\n"


class _Verb(NamedTuple):
    path: str
    about: str
    rows: tuple[tuple[str, str], ...]


def _list_verbs(root: Any, name: str) -> Iterator[_Verb]:
    command = root.get_command(typer.Context(root), name)
    yield from _walk(f"interlock {name}", command)


def _walk(path: str, command: Any) -> Iterator[_Verb]:
    context = typer.Context(command, info_name=path)
    about = re.sub(r"\s*\n(?!\n)\s*", " ", (command.help or "").strip())
    rows = tuple(row for each in command.params if (row := _describe_parameter(each, context)))
    yield _Verb(path, about, rows)
    for name, part in getattr(command, "commands", {}).items():
        if not part.hidden:
            yield from _walk(f"{path} {name}", part)


def _render_verb(verb: _Verb, shared: set[tuple[str, str]]) -> str:
    """Return a section: what the verb does, the options it shares, and its own, a line each."""
    also = ", ".join(f"`{row[0].split()[0]}`" for row in verb.rows if row in shared)
    own = [f"- `{name}`: {about}\n" for name, about in verb.rows if (name, about) not in shared]
    text = f"### {verb.path}\n\n{verb.about}" + (f" *Also* {also}." if also else "") + "\n"
    return text + ("\n" + "".join(own) if own else "")


def _describe_parameter(parameter: Any, context: typer.Context) -> tuple[str, str] | None:
    """Return the parameter's name and its text; None for a hidden option."""
    if getattr(parameter, "hidden", False):
        return None
    record = parameter.get_help_record(context)
    return (_join_lines(record[0]), _join_lines(record[1])) if record else None


def _join_lines(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()
