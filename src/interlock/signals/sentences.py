"""The sentence that goes with a refusal: it tells the agent what to write next time.

Knows how to say it. Refuses to know when: the readers decide that.
"""

import re
from collections.abc import Sequence

from interlock.signals.columns import SignalRow
from interlock.signals.grammar import SignalName


def first_line(row: SignalRow, task_id: str | None) -> str:
    """The signal line as it must be written, with the task's id where one is known."""
    line = row.grammar
    return line.replace("[task_id]", task_id) if task_id else line


def choices(legal: Sequence[SignalRow], task_id: str | None) -> str:
    lines = [f"`{first_line(row, task_id)}`" for row in legal]
    return "one of " + ", ".join(lines) if lines else "a signal your role may say"


def missing(legal: Sequence[SignalRow], task_id: str | None) -> str:
    return (
        "No signal was found. End your message with a signal line at column 0, outside fences "
        f"and quotes: {choices(legal, task_id)}."
    )


def unknown(name: str, legal: Sequence[SignalRow], task_id: str | None) -> str:
    return f"`{name}` is no signal of this protocol. Write {choices(legal, task_id)}."


def looks_like(word: str, legal: Sequence[SignalRow], task_id: str | None) -> str:
    lines = [first_line(row, task_id) for row in legal if row.word == word]
    wanted = " or ".join(f"`{line}`" for line in lines) or choices(legal, task_id)
    return (
        f"A line names {word} but is no legal signal. Write it alone on its line, at column 0, "
        f"without markup, outside fences and quotes, exactly: {wanted}."
    )


def wrong_role(row: SignalRow, role: str) -> str:
    speakers = " or ".join(row.roles)
    return f"{row.name} is said by the {speakers}, not by the {role}. Write a signal of your own."


def ambiguous(said: Sequence[SignalName]) -> str:
    heard = dict.fromkeys(f"{one.row.name} {one.subject or ''}".strip() for one in said)
    names = list(heard)[:4]
    return f"Your message says {' and '.join(names)}. Send it again with one signal only."


def wrong_task(row: SignalRow, named: str, expected: str) -> str:
    return f"You were asked about {expected}, but {row.name} names {named}. Write {expected}."


def stale(nonce: str) -> str:
    return f"The answer does not carry this dispatch's mark. Add the line `Dispatch: {nonce}`."


def outside(row: SignalRow) -> str:
    return f"{row.name} takes a path inside the workspace, relative to its root."


def prose_after_line(row: SignalRow) -> str:
    labels = ", ".join(f"`{section.label}:`" for section in row.sections)
    return (
        f"Prose stands directly under {row.name}. After the signal line come only its "
        f"sections: {labels}. Put explanations before it."
    )


def too_often(row: SignalRow) -> str:
    return f"{row.name} is said over and over. Send it once, at the end."


def verdict_alone(row: SignalRow) -> str:
    labels = ", ".join(f"`{section.label}:`" for section in row.sections)
    return (
        f"{row.name} lets work pass and must stand clean: send the verdict alone, with only its "
        f"sections {labels}."
    )


def contradiction(row: SignalRow, check: object) -> str:
    name = re.sub(r"\s+", " ", str(getattr(check, "name", check)))[:80]
    status = getattr(check, "status", "")
    return f"{row.name} lists `{name}` as {status}. A pass needs every item to hold."


def absent(row: SignalRow, labels: Sequence[str], task_id: str | None) -> str:
    wanted = " or ".join(f"`{label}:`" for label in labels)
    return (
        f"{first_line(row, task_id)} came without {wanted}. Send it again with that section "
        "filled in, without placeholders."
    )
