"""The reference pages of the command line, from verbs, options and exit codes as declared."""

import re
from collections.abc import Iterator
from typing import Any

import typer

from docs.pages.python import describe_fields
from interlock.cli.app import ExitCode, app
from interlock.cli.verbs import group_verbs
from interlock_epic.status import list_exit_codes

_HEAD = """\
# Command line reference

Made by `make docs` from the command line itself: every verb, argument and option.

Every verb accepts `--help`. See also [exit codes](exit-codes.md) and
[interlock.toml](settings.md), where a project keeps its defaults.
"""
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
    parts = [_HEAD]
    for group, verbs in group_verbs():
        parts.append(f"## {group}\n")
        for name in verbs:
            command = root.get_command(typer.Context(root), name)  # type: ignore[attr-defined]
            parts += list(_render_command(f"interlock {name}", command))
    return "\n".join(parts)


def render_exit_codes_page() -> str:
    texts = describe_fields(ExitCode)
    rows = [f"| {code.value} | `{code.name}` | {texts[code.name][1]} |" for code in ExitCode]
    epic = [
        f"| {code} | `{outcome}` | {meaning} |"
        for outcome, code, meaning in sorted(list_exit_codes(), key=lambda row: row[1])
    ]
    return _EXIT_CODES_HEAD + "\n".join(rows) + "\n" + _EPIC_HEAD + "\n".join(epic) + "\n"


def _render_command(path: str, command: Any) -> Iterator[str]:
    context = typer.Context(command, info_name=path)
    about = re.sub(r"\s*\n(?!\n)\s*", " ", (command.help or "").strip())
    usage = " ".join(command.collect_usage_pieces(context))
    yield f"### {path}\n"
    yield f"{about}\n"
    yield f"```\n{path} {usage}".rstrip() + "\n```\n"
    rows = [row for each in command.params if (row := _render_parameter(each, context))]
    if rows:
        yield "| | |\n|---|---|\n" + "\n".join(rows) + "\n"
    for name, part in getattr(command, "commands", {}).items():
        if not part.hidden:
            yield from _render_command(f"{path} {name}", part)


def _render_parameter(parameter: Any, context: typer.Context) -> str:
    """A row of the table; empty for an option that is hidden."""
    if getattr(parameter, "hidden", False):
        return ""
    record = parameter.get_help_record(context)
    return f"| `{_to_cell(record[0])}` | {_to_cell(record[1])} |" if record else ""


def _to_cell(text: str) -> str:
    return re.sub(r"\s+", " ", text).replace("|", "\\|").strip()
