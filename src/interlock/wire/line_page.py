"""The page on line signals.

Knows how to explain them. Refuses to know any that is not in the catalogue.
"""

# ruff: noqa: E501 -- rows of a Markdown table cannot be wrapped

from typing import Final

from interlock.wire.catalogue import rows
from interlock.wire.columns import Row

_RULES: Final = """\
# Line signals

A session tells its coordinator what happens by printing lines:

```
SAGE_SIGNAL:TYPE
SAGE_SIGNAL:TYPE:PAYLOAD
```

## Reading

- A signal fills a line, starts at column 0, and its type is upper case: `[A-Z][A-Z0-9_]*`.
- A payload is optional unless the table says otherwise. Its fields are joined by colons, and the
  last field takes the rest of the line, colons and all.
- A type that is not in the table is journaled and changes nothing. A line that is meant as a signal
  and is none is journaled with the reason.
- The same signal twice in one session has an effect once.

`CHECKPOINT` has three verbs. `WRITE` needs all four fields, filled; exactly four fields whose first
is no verb are a `WRITE` too; `MISSING` ignores what follows; anything else is refused. Only `WRITE`
ends the session and starts a fresh one.

Outcomes of a human review are claims: only the inbox or the issue decides. Without an issue number
they are refused; `HITL_REQUIRED` without one opens a question in the inbox. `EPIC_COMPLETE` without
the word `success` is never a success. A session that ends without a signal is its own outcome,
never a success.

## Where a line may stand

| source | how it is read |
|---|---|
| a plain command's output | line by line; terminal colours are stripped, Markdown means nothing |
| an agent's messages | fences, quotes and all that text signals call inert say nothing; `EPIC_COMPLETE` counts only from the final message, all others as they come |
| tool results, prompts, thinking | never |

A last line without its newline counts only if the stream ended by itself.
"""
_LEGACY: Final = """\
## Older forms

These blocks are understood too. A block with any damage (no closing rule, a line that is not
`KEY: value`, a missing field) is refused whole.

```
============================================
SAGE_SIGNAL:HITL_REQUIRED
REVIEW_TYPE: plan
ISSUE_NUMBER: 42
============================================
```

```
═══ SAGE_SIGNAL:CHECKPOINT ═══
CHECKPOINT_FILE: .sage/state/epic-3.json
COMMIT: 0123456789abcdef0123456789abcdef01234567
NEXT_ACTION: continue
═══════════════════════════════
```

```
═══════════════════════════════
SIGNAL: RECOVERY_COMPLETE
REVERTED_TO: 0123456789abcdef0123456789abcdef01234567
NEXT_ACTION: resume
═══════════════════════════════
```
"""


def line_page() -> str:
    lines = [
        f"| `{row.template}` | {_fields(row)} | {'yes' if row.terminal else ''} | {row.asks} |"
        for row in rows("line")
    ]
    head = "| signal | needs | ends the session | what it asks |\n|---|---|---|---|"
    table = "\n".join(["## The signals\n", head, *lines])
    codes = next(f.choices for r in rows("line") for f in r.payload if f.name == "error_code")
    listed = "\n".join(f"- `{code}`" for code in codes)
    parts = [_RULES, table, f"## Error codes\n\n{listed}", _LEGACY]
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


def _fields(row: Row) -> str:
    return ", ".join(f"`{field.name}`" for field in row.payload if field.required)
