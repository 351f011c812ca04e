"""The page on line signals: the rules in words, and the table of signals from the catalogue."""

# ruff: noqa: E501 -- rows of a Markdown table cannot be wrapped

from typing import Final

from interlock.signals.catalogue import SignalRow, list_signals

_RULES: Final = """\
# Line signals

A session reports to its coordinator by printing lines:

```
SAGE_SIGNAL:TYPE
SAGE_SIGNAL:TYPE:PAYLOAD
```

The rules are numbered; [corpus.jsonl](corpus.jsonl) cites them as `lines 1` to `lines 5`.

## Rules

### 1. Checkpoints

`CHECKPOINT` has the verbs `WRITE`, `LOADED` and `MISSING`. `WRITE` needs its four fields, all filled; a placeholder
such as `{task}` counts as empty. Exactly four fields whose first is not a verb are a `WRITE` too. `MISSING` ignores
what follows. Anything else after `CHECKPOINT`, or nothing, is refused. Only `WRITE` ends the session and starts a
fresh one.

### 2. Claims

Outcomes of a human review are claims: only the inbox or the issue decides. Without an issue number, in the form
`issue:42`, they are refused; `HITL_REQUIRED` without one opens a question in the inbox. `EPIC_COMPLETE` is a success
only with the exact status `success`. Other signals may come without a payload. A session that ends without a signal
is never a success.

### 3. The line

A signal fills a line and starts at column 0. The prefix and the type are upper case; a type is `[A-Z][A-Z0-9_]*`. The
payload's fields are joined by colons, and the last field takes the rest of the line, colons included. A payload holds
no control characters, a line at most 65,536 characters. A type that is not in the table is `Unknown`: it is journaled
and changes nothing. A line that is meant as a signal but wrong (the prefix indented, or in another case) is refused
as `Malformed`. The prefix in the middle of a line means nothing.

### 4. Where a line may stand

| source | how it is read |
|---|---|
| a plain command's output | line by line; terminal colours are stripped, Markdown means nothing |
| an agent's messages, decoded or in text mode | text that is [inert](text-signals.md#1-inert-text) says nothing; `EPIC_COMPLETE` counts only from the final message, all others as they come |
| tool results, prompts, thinking, sub-agents | never |

`EPIC_COMPLETE` in an earlier message is refused as `Stale`. A last line without its newline counts only if the stream
ended by itself; otherwise it is `Missing`.

Inside a supervised session, `interlock emit TYPE PAYLOAD` checks a signal, prints its line and delivers it over the
unix socket in `INTERLOCK_CHANNEL`, which takes one line of JSON `{"token": …, "type": …, "payload": …}` with the
token of `INTERLOCK_TOKEN`, and answers `{"ok": true, "error": ""}` or `{"ok": false, "error": "why"}`.

### 5. Twice

The same type and payload a second time in one session is journaled without effect.
"""


def render_line_page() -> str:
    lines = [
        f"| `{row.template}` | {_fields(row)} | {'yes' if row.terminal else ''} | {row.asks} |"
        for row in list_signals("line")
    ]
    head = "| signal | needs | ends the session | what it asks |\n|---|---|---|---|"
    table = "\n".join(["## The signals\n", head, *lines])
    codes = next(
        f.choices for r in list_signals("line") for f in r.payload if f.name == "error_code"
    )
    listed = ", ".join(f"`{code}`" for code in codes)
    parts = [_RULES, table, f"## Error codes\n\n{listed}."]
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


def _fields(row: SignalRow) -> str:
    return ", ".join(f"`{field.name}`" for field in row.payload if field.required)
