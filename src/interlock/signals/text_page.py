"""The page on text signals.

Knows how to explain them. Refuses to know any that is not in the catalogue.
"""

# ruff: noqa: E501 -- rows of a Markdown table cannot be wrapped

from typing import Final

from interlock.signals.catalogue import WORKING, SignalRow, rows
from interlock.signals.reading import SignalRefused
from interlock.signals.text import read_message
from interlock.signals.text_rules import TEXT_RULES


def text_page() -> str:
    said = [row for row in rows("text") if row.key != "unknown"]
    unknown = next(row for row in rows("text") if row.key == "unknown")
    parts = [
        TEXT_RULES,
        _sentences(),
        _overview(said),
        _matrix(said),
        "## The signals",
        *map(_signal, said),
    ]
    parts.append(
        f"### `unknown`\n\nNot said by anyone: what a refused message counts as. {unknown.asks}"
    )
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


# One message per reason, said by the developer of t1 under the nonce n1.
_REFUSED: Final = (
    ("READY_FOR_REVIEW: t1", True),
    ("AUDIT_PASSED: t1", False),
    ("READY_FOR_REVIEW: t1\nTASK_INCOMPLETE: t1", False),
    ("READY_FOR_REVIEW: t2", False),
    ("**READY_FOR_REVIEW: t1**", False),
    ("TASK_INCOMPLETE: t1", False),
    ("READY_FOR_REVIEW: t1\nis near.", False),
    ("WORK_DONE: t1", False),
    ("All done.", False),
)


def _sentences() -> str:
    lines = ["### Sentences\n", _TOLD, "| message | refused as | sentence |", "|---|---|---|"]
    for text, strict in _REFUSED:
        nonce = "n1" if strict else None
        reading = read_message(text, role="developer", task_id="t1", nonce=nonce, strict=strict)
        if isinstance(reading, SignalRefused):
            shown = " ⏎ ".join(f"`{line}`" for line in text.split("\n"))
            lines.append(f"| {shown} | `{reading.reason.value}` | {reading.sentence} |")
    return "\n".join(lines)


_TOLD: Final = """\
The sentence of a refusal goes back to the agent as it is. These are said to the developer of the task
`t1`, the first under strict signals with the nonce `n1`.
"""


def _overview(said: list[SignalRow]) -> str:
    lines = [
        f"| `{row.grammar}` | {row.level} | {_yes(row.terminal)} | {_yes(row.passing)} "
        f"| {_yes(row.verdict)} | {row.asks} |"
        for row in said
    ]
    head = (
        "| signal | level | terminal | pass | verdict | what it asks |\n|---|---|---|---|---|---|"
    )
    return "\n".join(["## Overview\n", head, *lines])


def _matrix(said: list[SignalRow]) -> str:
    head = f"| signal | {' | '.join(WORKING)} |\n|---|{'---|' * len(WORKING)}"
    lines = [
        f"| `{row.name}` | {' | '.join(_yes(role in row.roles) for role in WORKING)} |"
        for row in said
    ]
    return "\n".join(["## Who may say what\n", head, *lines])


def _yes(fact: bool) -> str:
    return "yes" if fact else ""


def _signal(row: SignalRow) -> str:
    needs = " and ".join(" or ".join(f"`{label}`" for label in some) for some in row.requires)
    needed = f"It needs {needs}." if needs else "It is taken bare, with a note."
    kinds = "\n".join(f"| `{s.label}` | `{s.key}` | {_kind(row, s.label)} |" for s in row.sections)
    return f"""\
### `{row.name}`

{row.asks} Said by: {", ".join(row.roles)}. {needed}

```
{row.template.rstrip()}
```

| section | field | holds |
|---|---|---|
{kinds}"""


_SHAPES: Final = {
    "text": "text",
    "list": "list of texts",
    "files": "list of `{file, note}`",
    "issues": "list of `{file, line, text}`",
    "checks": "list of `{name, status, environment, detail}`",
    "criteria": "list of `{text, done}`",
    "pairs": "list of `{name, text}`",
    "names": "list of names",
    "name": "name",
}


def _kind(row: SignalRow, label: str) -> str:
    section = next(s for s in row.sections if s.label == label)
    return " or ".join(f"`{c}`" for c in section.choices) or _SHAPES[section.kind]
