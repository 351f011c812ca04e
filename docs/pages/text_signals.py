"""The page on text signals: the rules in words, numbered as the corpus cites them, and every form.

The rules only say what the readers do; a test holds each of them to rows of the published corpus.
The forms, roles and levels come from the catalogue.
"""

# ruff: noqa: E501 -- rows of a Markdown table cannot be wrapped

from typing import Final

from interlock.signals.catalogue import SignalRow, list_signals
from interlock.signals.grammar import LONGEST_ID
from interlock.signals.reading import SignalRefused
from interlock.signals.text import read_message

_RULES: Final = f"""\
# Text signals

An agent ends its last message with a signal: one line at column 0, and under it a body of labelled sections. A reader
accepts one signal, or refuses the message with a reason and a sentence that tells the agent what to write.

A signal that lets work pass needs a clean message; one that holds work back is read leniently. The
[overview](#overview) marks each **pass**, which lets work go on, and each **verdict**, a pass that nobody checks
again.

The rules are numbered; [corpus.jsonl](corpus.jsonl) cites them as `text 1` to `text 12`.

## The line

A signal line is the whole line, from column 0 to its end:

| form | signals |
|---|---|
| `NAME` | those without a subject |
| `NAME: value` | those with a subject, and `HEALTH_AUDIT` with `HEALTHY` or `UNHEALTHY` |

The name is exact and upper case. Directly after it come the colon, at least one blank or tab, and the value. An id is
`[A-Za-z0-9][A-Za-z0-9._/#-]*`, at most {LONGEST_ID} characters. Only blanks and tabs may follow.

## Rules

### 1. Inert text

Nothing is a signal inside

- code fences of backticks or tildes, also under a list item; an unclosed one reaches to the end of the message.
  Inside a fence, a fence line with an info string opens a further level and a bare one closes the innermost;
- block quotes, with their lazy continuation: a line that follows a quoted paragraph without a blank line belongs to
  it;
- indented code, and any other line that does not start at column 0;
- HTML comments, and `<pre>`, `<code>`, `<think>`, `<thinking>` and `<blockquote>` elements. One that opens a line and
  is never closed reaches to the end; in the middle of a line, or inside a code span, it is plain text;
- the lines between `---DELEGATION PROMPT START---` and `---DELEGATION PROMPT END---`.

All other lines are *live*.

### 2. Blocks

Each live signal line opens a block that runs to the next live signal line or to the end of the message. Signal lines
with only blank lines between them share one block.

### 3. Which one counts

Of all live signals that the role may say, those of the highest level (1 is highest) are compared:

| they are | then |
|---|---|
| all the same, with the same subject | that one |
| one name with two subjects | `Ambiguous` |
| different ones, two of them in one block | `Ambiguous` |
| different ones in several blocks, the last of them a pass | `Ambiguous` |
| different ones in several blocks, the last of them not a pass | the last one |

The winner is then checked by rules 5, 6, 10 and 12. If it fails, the message is refused; no other signal takes its
place. A pass that is said twice must satisfy rule 5 in each of its blocks; their sections count together.
`CHECKPOINT` has the lowest level and decides nothing beside another signal.

### 4. Words of other roles

A signal that the role may not say is ignored beside a legal one. After a verdict that would count, or without any
other signal, it makes the message `WrongRole`.

### 5. The body

Under the signal line come labelled sections, lists, tables and fences. Prose before the first section is `Malformed`,
with or without blank lines between: the sentence could take the signal back.

A section is its label's line or its first paragraph, with the lists, tables, fences and indented lines that follow.
Only the labels of that signal's form open a section. A label may be bold or a heading, in any case, indented by up to
three blanks, with a remark in parentheses; except in a signal that must stand alone it may also be a list item (`-
Blocker: …`). A later paragraph is a closing remark.

Closing remarks are allowed, except after a signal that must stand alone: the verdicts, and `REMEDIATION_COMPLETE`.
Such a signal is `Malformed` when

- anything under it is not of its form, which includes the fixed closing sentence;
- anywhere in the message a live line starts at column 0 with a signal's name but is not a legal signal;
- one of its listed results does not hold: `FAILED`, `NOT VERIFIED`, an open box and the like, in any case;
- its body holds terminal colour codes.

### 6. Required sections

A section that still holds a `[placeholder]` of the form, or an empty word such as `none`, counts as absent. An absent
required section makes the signal `Malformed`; each signal below names its required sections. The verification results
of a signal that must stand alone need at least one item with its result. Signals that require nothing are accepted
bare, with a note.

### 7. Reasons

See [refusals](#refusals).

### 8. Characters

A byte order mark at the start of the message is dropped. Only LF and CRLF end a line. Only blank and tab are blanks:
a no-break space, a zero-width character, a look-alike letter or a terminal colour code in a signal line makes it
`Malformed`.

### 9. Whose message

Only the agent's own last message counts, and only if its turn ended by itself. Tool results, the prompt, thinking,
and the words of sub-agents are not the agent's. A session that was cut off (turn limit, budget, kill, error) has no
last message: `Missing`. Text that arrives after the coordinator has stopped the session does not count.

| stream | the last message is | there is none when |
|---|---|---|
| Claude Code, `stream-json` | `result` of the last `result` event | its subtype is not `success`, `is_error` is true, `num_turns` is 0, the agent spoke on after it |
| Codex, `exec --json` | the last `agent_message` before `turn.completed` | the turn failed, a top-level error came after it, an item is still open |

### 10. Subjects

The id on the line must be the dispatched task, else `WrongTask`. If the line has no subject and the body has `Task:`,
that must name it: the id alone, or followed by a title (`t1 (login)`). `Agent:` is only informative. An expert's
answer names its request. `FILE CONFLICT` takes the rest of the line as a path relative to the workspace; one that
leads out of it is `Malformed`.

### 11. Roles

Each of [the signals](#the-signals) names the roles that may say it.

### 12. Strict signals

With strict signals, the block of the signal that counts must carry the dispatch's nonce: as a line `Dispatch: NONCE`
in the body, or at the end of the signal line as `NONCE`, `[NONCE]` or `[dispatch NONCE]`. Without it the answer is
`Stale`; another nonce is always `Stale`. `FILE CONFLICT` carries it in the body only.

## Refusals

If several reasons apply, the first of this list is given.

| reason | when |
|---|---|
| `Stale` | the answer does not carry this dispatch's nonce, or carries another |
| `WrongRole` | only signals of other roles, or one of them after a verdict |
| `Ambiguous` | several signals could be meant |
| `WrongTask` | the signal names another task than the one that was dispatched |
| `Malformed` | a line starts with a known name but is not a legal signal; or the body breaks a rule |
| `Unknown` | no known name anywhere, but a live line at column 0 of one upper-case name with an underscore, bare or with a colon; or a live `SAGE_SIGNAL:` line |
| `Missing` | everything else |

A line *starts with a known name* also after markup, bullets, quote, diff or comment marks, table bars, signs or
blanks, and when it only looks like the name: in another case, with hyphens or blanks for underscores, with letters of
other scripts or invisible characters in it. Such a line in inert text is `Malformed` too: the agent meant it.

Three refusals in a row end the attempt; a good signal starts the count again.
"""


def render_text_page() -> str:
    said = [row for row in list_signals("text") if row.key != "unknown"]
    unknown = next(row for row in list_signals("text") if row.key == "unknown")
    parts = [_RULES, _sentences(), _overview(said), _SIGNALS, *map(_signal, said)]
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
    lines = ["### Sentences\n", _SENTENCES, "| message | refused as | sentence |", "|---|---|---|"]
    for text, strict in _REFUSED:
        nonce = "n1" if strict else None
        reading = read_message(text, role="developer", task_id="t1", nonce=nonce, strict=strict)
        if isinstance(reading, SignalRefused):
            shown = " ⏎ ".join(f"`{line}`" for line in text.split("\n"))
            lines.append(f"| {shown} | `{reading.reason.value}` | {reading.sentence} |")
    return "\n".join(lines)


_SENTENCES: Final = """\
The agent gets the sentence of a refusal as it stands. These examples are for the developer of the task `t1`; the
first has strict signals with the nonce `n1`.
"""


def _overview(said: list[SignalRow]) -> str:
    lines = [
        f"| `{row.grammar}` | {row.level} | {_yes(row.terminal)} | {_yes(row.passing)} "
        f"| {_yes(row.verdict)} | {_yes(row.alone)} | {row.asks} |"
        for row in said
    ]
    head = "| signal | level | terminal | pass | verdict | alone | what it asks |\n|---|---|---|---|---|---|---|"
    return "\n".join(["## Overview\n", head, *lines])


def _yes(fact: bool) -> str:
    return "yes" if fact else ""


_SIGNALS: Final = """\
## The signals

A section becomes the field that its label names, in small letters with underscores: `Files Modified` is
`files_modified`.
"""


def _signal(row: SignalRow) -> str:
    needs = " and ".join(" or ".join(f"`{label}`" for label in some) for some in row.requires)
    needed = f"It needs {needs}." if needs else "It is accepted bare, with a note."
    kinds = [f"`{section.label}` ({_kind(row, section.label)})" for section in row.sections]
    held = f" Sections: {', '.join(kinds)}." if kinds else ""
    return f"""\
### `{row.name}`

{row.asks} Said by: {", ".join(row.roles)}. {needed}{held}

```
{row.template.rstrip()}
```"""


_SHAPES: Final = {
    "text": "text",
    "list": "texts",
    "files": "list of `{file, note}`",
    "issues": "list of `{file, line, text}`",
    "checks": "list of `{name, status, environment, detail}`",
    "criteria": "list of `{text, done}`",
    "pairs": "list of `{name, text}`",
    "names": "names",
    "name": "name",
}


def _kind(row: SignalRow, label: str) -> str:
    section = next(s for s in row.sections if s.label == label)
    return " or ".join(f"`{c}`" for c in section.choices) or _SHAPES[section.kind]
