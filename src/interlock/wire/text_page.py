"""The page on text signals.

Knows how to explain them. Refuses to know any that is not in the catalogue.
"""

# ruff: noqa: E501 -- rows of a Markdown table cannot be wrapped

from typing import Final

from interlock.wire.catalogue import rows
from interlock.wire.columns import WORKING, Row
from interlock.wire.grammar import LONGEST_ID

_RULES: Final = f"""\
# Text signals

An agent ends its last message with a signal: one line at column 0, and under it a body of labelled
sections. Interlock reads the message, takes one signal or refuses the message with a reason.

## The line

- It starts at column 0 and fills the whole line. CRLF and trailing blanks are fine.
- The name is exact and upper case. Between colon and value stand blanks or tabs, at least one.
- An id is `[A-Za-z0-9][A-Za-z0-9._/#-]*`, at most {LONGEST_ID} characters. `FILE CONFLICT` takes the
  rest of the line as a path inside the workspace.
- A byte order mark at the start of the message is dropped. No-break spaces, zero-width characters,
  look-alike letters and terminal colours are not blanks and not letters: they make the line
  malformed. A lone carriage return ends no line.

## Text that says nothing

Nothing is a signal inside code fences (also unclosed or nested ones), block quotes with their lazy
continuation, indented code, HTML comments, `<pre>`, `<code>` and `<think>` spans, or between
`---DELEGATION PROMPT START---` and `---DELEGATION PROMPT END---`. A comment or tag that is never
closed reaches to the end of the message if it opens a line, and is plain text elsewhere.

## Which one counts

Each live signal line opens a block that runs to the next one or to the end; signal lines with only
blank lines between them share one block. Of the signals the role may say, the highest level wins
(1 is highest). Within one level:

- all the same: that one. One name with two subjects: `Ambiguous`.
- different ones in one block: `Ambiguous`.
- different ones in several blocks: the last block's, unless that is a pass: then `Ambiguous`.

The winner is then checked; if it fails, nothing takes its place. A signal the role may not say is
ignored beside a legal one, but after a verdict (see the table) it makes the message `WrongRole`.

## The body

After the signal line come labelled sections, lists, tables and fences; prose directly under the
line is malformed. A section is its label's line or first paragraph, with the lists, tables, fences
and indented lines that follow. Only the labels of that signal's form open a section; they may be
bold or a heading, in any case. A later paragraph is a closing remark. Remarks are fine, except
after a verdict: there anything beyond the form, any other line at column 0 that names a signal, and
any listed result that does not hold (`FAILED`, `NOT VERIFIED`, an unticked box) makes the message
malformed.

A section that still holds a `[placeholder]` of the form counts as absent. Where the line carries no
task, `Task:` in the body must be the dispatched one if it is given.

## Strict signals

With strict signals the dispatch's nonce must stand in the block: as a line `Dispatch: NONCE` under
the signal line, or at the end of the signal line itself as `[dispatch NONCE]`. Without it, or with
another one, the answer is `Stale`.

## Refusals

Where several apply, the first of this list is given.

| reason | when |
|---|---|
| `Stale` | the answer does not carry this dispatch's nonce |
| `WrongRole` | only signals of other roles, or one of them after a verdict |
| `Ambiguous` | it cannot be told which signal is meant |
| `WrongTask` | the signal names another task than the one that was dispatched |
| `Malformed` | a line starts with a known name, or one that looks like it, and is no legal signal; or the body is not as it must be |
| `Unknown` | no known name anywhere, but a line at column 0 of one upper-case name with an underscore; or a `SAGE_SIGNAL:` line |
| `Missing` | everything else; also a session that was cut off |

Three refusals in a row end the attempt; a good signal starts the count again.
"""


def text_page() -> str:
    said = [row for row in rows("text") if row.key != "unknown"]
    unknown = next(row for row in rows("text") if row.key == "unknown")
    parts = [_RULES, _overview(said), _matrix(said), "## The signals", *map(_signal, said)]
    parts.append(
        f"### `unknown`\n\nNot said by anyone: what a refused message counts as. {unknown.asks}"
    )
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


def _overview(said: list[Row]) -> str:
    lines = [
        f"| `{row.grammar}` | {row.level} | {_yes(row.terminal)} | {_yes(row.passing)} "
        f"| {_yes(row.verdict)} | {row.asks} |"
        for row in said
    ]
    head = (
        "| signal | level | terminal | pass | verdict | what it asks |\n|---|---|---|---|---|---|"
    )
    return "\n".join(["## Overview\n", head, *lines])


def _matrix(said: list[Row]) -> str:
    head = f"| signal | {' | '.join(WORKING)} |\n|---|{'---|' * len(WORKING)}"
    lines = [
        f"| `{row.name}` | {' | '.join(_yes(role in row.roles) for role in WORKING)} |"
        for row in said
    ]
    return "\n".join(["## Who may say what\n", head, *lines])


def _yes(fact: bool) -> str:
    return "yes" if fact else ""


def _signal(row: Row) -> str:
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


def _kind(row: Row, label: str) -> str:
    section = next(s for s in row.sections if s.label == label)
    return " or ".join(f"`{c}`" for c in section.choices) or _SHAPES[section.kind]
