"""Text signals: one message in, one reading out.

Asks in this order: is there a signal, which of several counts, may the role say it, is it sound. If
the one that counts fails its checks, nothing takes its place. The caller hands over the agent's own
final words.
"""

from collections import deque
from collections.abc import Sequence

from interlock.signals import text_check
from interlock.signals.body import parse_section
from interlock.signals.catalogue import list_role_signals, may_send, normalize_role
from interlock.signals.grammar import (
    SAGE_LINES,
    UNKNOWN,
    SignalName,
    find_last_lookalike,
    has_signal_name,
)
from interlock.signals.reading import Accepted, Reading, Reason, SignalRefused
from interlock.signals.text_check import (
    ExpectedReply,
    Message,
    SignalClaim,
    check_any_nonce,
    check_claim,
    is_present,
    open_message,
    parse_claim,
)


def choose_signal(message: Message) -> SignalName | SignalRefused:
    """The signal that counts among all that are live in the message."""
    signals = [one for block in message.blocks for one in block.signals]
    legal = [one for one in signals if may_send(message.expected.role, one.row)]
    if not legal:
        return _refuse_role(message, signals[-1])
    level = min(one.row.level for one in legal)
    top = [one for one in legal if one.row.level == level]
    winner = _find_winner(message, top)
    if (winner is None or winner.row.verdict) and (
        stray := _find_illegal_after(message, signals, top)
    ):
        return _refuse_role(message, stray)
    if winner is None:
        return message.refuse(Reason.AMBIGUOUS, text_check.explain_ambiguous(top), top[-1].start)
    return winner


def _find_winner(message: Message, top: Sequence[SignalName]) -> SignalName | None:
    """The one claim of the highest level, or None if that cannot be told."""
    claims = {(one.row.name, one.subject) for one in top}
    names = {name for name, _ in claims}
    if len(claims) > len(names) or (len(names) > 1 and _is_mixed(message, top)):
        return None
    return None if len(names) > 1 and top[-1].row.passing else top[-1]


def _is_mixed(message: Message, top: Sequence[SignalName]) -> bool:
    """Whether one block says two different things of the same level."""
    counted = {one.start for one in top}
    return any(
        len({one.row.name for one in block.signals if one.start in counted}) > 1
        for block in message.blocks
    )


def _find_illegal_after(
    message: Message, signals: Sequence[SignalName], top: Sequence[SignalName]
) -> SignalName | None:
    """A word of another role after a verdict: it cannot be told whose verdict it is."""
    verdicts = [one.start for one in top if one.row.verdict]
    if not verdicts:
        return None
    later = (one for one in signals if one.start > verdicts[0])
    return next((one for one in later if not may_send(message.expected.role, one.row)), None)


def _refuse_role(message: Message, one: SignalName) -> SignalRefused:
    sentence = text_check.explain_wrong_role(one.row, message.expected.role)
    return message.refuse(Reason.WRONG_ROLE, sentence, one.start)


def read_message(
    text: str,
    *,
    role: str,
    task_id: str | None,
    nonce: str | None = None,
    strict: bool = False,
    request_id: str | None = None,
) -> Reading:
    """Read an agent's final message as the answer to one dispatch."""
    asked = ExpectedReply(normalize_role(role), task_id, request_id, nonce, strict)
    message = open_message(text, asked)
    if not message.blocks:
        return _refuse_unsaid(message)
    if stale := check_any_nonce(message):
        return stale
    chosen = choose_signal(message)
    if isinstance(chosen, SignalRefused):
        return chosen
    claim = parse_claim(message, chosen)
    return check_claim(message, claim) or _accept(message, claim)


def _accept(message: Message, claim: SignalClaim) -> Accepted:
    row, body = claim.signal.row, claim.all_sections
    present = [part for part in body.parts.values() if is_present(part, row)]
    bare = bool(row.sections) and not present
    return Accepted(
        signal=row.name,
        subject=claim.signal.subject,
        fields={part.section.key: parse_section(part) for part in present},
        notes=(f"{row.name} came without any of its sections",) if bare else (),
        where=message.find_line(claim.signal.start),
    )


def _refuse_unsaid(message: Message) -> SignalRefused:
    """No live signal at all: was one meant, is it one we do not know, or is there none?"""
    source, task_id = message.source, message.expected.task_id
    legal = list_role_signals(message.expected.role)
    if meant := find_last_lookalike(source):
        sentence = text_check.explain_lookalike(meant[0], legal, task_id)
        return message.refuse(Reason.MALFORMED, sentence, meant[1])
    strangers = deque(SAGE_LINES.find(source), maxlen=1)
    if not strangers and UNKNOWN.anywhere.search(source) and not has_signal_name(source):
        strangers = deque(UNKNOWN.find(source), maxlen=1)
    if not strangers:
        return message.refuse(Reason.MISSING, text_check.explain_missing(legal, task_id))
    name = strangers[-1][0].strip().partition(":")[0]
    sentence = text_check.explain_unknown(name, legal, task_id)
    return message.refuse(Reason.UNKNOWN, sentence, strangers[-1].start())
