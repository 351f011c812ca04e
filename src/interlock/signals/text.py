"""Text signals: one message in, one reading out.

Knows the order of the questions: is there a signal, which one counts, is it sound.
Refuses to know where the message came from: the caller hands over the agent's own final words.
"""

from collections import deque

from interlock.signals import sentences
from interlock.signals.catalogue import legal_for, role_named
from interlock.signals.choice import choose
from interlock.signals.claim import SignalClaim, check, check_any_nonce, claim_of
from interlock.signals.filled import is_present
from interlock.signals.grammar import SAGE_LINES, UNKNOWN, names_a_signal
from interlock.signals.items import value_of
from interlock.signals.lookalike import last_lookalike
from interlock.signals.message import ExpectedReply, Message, open_message
from interlock.signals.reading import Accepted, Reading, Reason, SignalRefused


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
    asked = ExpectedReply(role_named(role), task_id, request_id, nonce, strict)
    message = open_message(text, asked)
    if not message.blocks:
        return _unsaid(message)
    if stale := check_any_nonce(message):
        return stale
    chosen = choose(message)
    if isinstance(chosen, SignalRefused):
        return chosen
    claim = claim_of(message, chosen)
    return check(message, claim) or _accept(message, claim)


def _accept(message: Message, claim: SignalClaim) -> Accepted:
    row, body = claim.said.row, claim.whole
    present = [part for part in body.parts.values() if is_present(part, row)]
    bare = bool(row.sections) and not present
    return Accepted(
        signal=row.name,
        subject=claim.said.subject,
        fields={part.section.key: value_of(part) for part in present},
        notes=(f"{row.name} came without any of its sections",) if bare else (),
        where=message.line_at(claim.said.start),
    )


def _unsaid(message: Message) -> SignalRefused:
    """No live signal at all: was one meant, is it one we do not know, or is there none?"""
    source, task_id = message.source, message.asked.task_id
    legal = legal_for(message.asked.role)
    if meant := last_lookalike(source):
        sentence = sentences.looks_like(meant[0], legal, task_id)
        return message.refuse(Reason.MALFORMED, sentence, meant[1])
    strangers = deque(SAGE_LINES.find(source), maxlen=1)
    if not strangers and UNKNOWN.anywhere.search(source) and not names_a_signal(source):
        strangers = deque(UNKNOWN.find(source), maxlen=1)
    if not strangers:
        return message.refuse(Reason.MISSING, sentences.missing(legal, task_id))
    name = strangers[-1][0].strip().partition(":")[0]
    sentence = sentences.unknown(name, legal, task_id)
    return message.refuse(Reason.UNKNOWN, sentence, strangers[-1].start())
