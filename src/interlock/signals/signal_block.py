"""What to paste into an agent's prompt so that it answers legally.

Knows how to teach a role its signals. Refuses to know the rest of the prompt.
Every form is shown indented, so that a prompt that is echoed says nothing.
"""

from typing import Final

from interlock.signals.catalogue import legal_for, role_named
from interlock.signals.columns import SignalRow

_TEXT_RULES: Final = """\
## How to answer

Your last message is read by a program. End it with one of the signals below.

- The signal line starts at column 0 and stands alone on its line: the exact name, a colon, a
  blank, the value, nothing more.
- Explanations go before it. Under it come only its sections, as shown.
- Nothing counts inside code fences, quotes, comments or tags.
- Name only the task you were given. Say one signal, once.
- Replace everything in [brackets]; a section that still holds a placeholder counts as absent.
- The forms are shown indented by four blanks. Write yours without the indent.
"""
_VERDICT_RULE: Final = """\
- A verdict that lets work pass must stand alone: no remarks after it, no item that does not hold.
"""
_LINE_RULES: Final = """\
## How to report

Print a signal as a line of its own, at column 0, in upper case. Fields are joined by colons; only
the last may hold a colon. Nothing counts inside code fences or quotes. The forms are shown
indented by four blanks. Write yours without the indent.
"""


def signal_block(role: str, *, task_id: str | None = None, nonce: str | None = None) -> str:
    """The rules and forms for one role: a text role of seed 002, or `session` for seed 004."""
    legal = legal_for(role)
    if legal:
        return _text_block(legal, task_id, nonce)
    lines = legal_for(role, "line")
    if not lines:
        raise ValueError(f"no signal is said by {role_named(role)}")
    shown = "\n".join(f"- {row.asks}\n\n    {row.template}\n" for row in lines)
    return f"{_LINE_RULES}\n{shown}"


def _text_block(legal: tuple[SignalRow, ...], task_id: str | None, nonce: str | None) -> str:
    rules = _TEXT_RULES + (_VERDICT_RULE if any(row.verdict for row in legal) else "")
    if nonce:
        rules += f"- Put the line `Dispatch: {nonce}` under the signal line.\n"
    return "\n".join([rules, *(_form(row, task_id, nonce) for row in legal)])


def _form(row: SignalRow, task_id: str | None, nonce: str | None) -> str:
    template = row.template
    if task_id:
        template = template.replace("[task_id]", task_id)
    if nonce:
        line, _, body = template.partition("\n")
        template = f"{line}\nDispatch: {nonce}\n{body}"
    indented = "".join(f"    {line}".rstrip() + "\n" for line in template.splitlines())
    return f"What `{row.name}` asks: {row.asks}{_needed(row)}\n\n{indented}"


def _needed(row: SignalRow) -> str:
    if not row.requires:
        return ""
    wanted = " and ".join(" or ".join(f"`{label}`" for label in some) for some in row.requires)
    return f" It needs {wanted}."
