"""The desk at which those at work ask a human: people are told at once, and who answers is checked.

Knows the folder of queries, the project's policy and whom to tell. A reply of somebody who may not
give it counts as none, is taken away and told to the journal. Refuses to know who asks, and how.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from interlock.agents import query
from interlock.agents.answerers import EVERYBODY, AnswerPolicy
from interlock.agents.carrier import Ask, Reply
from interlock.agents.human import owner_of
from interlock.agents.query import QUERY, AgentQuery, QueryReply
from interlock.journal.events import Notification, Tell, silence

_SHOWN = 80


def _nowhere(_reply: Reply) -> None:
    """Nobody keeps a journal here."""


class QueryBroker:
    """Queries of all dispatches of one carrier. `tell` and `refuse` are put in before it works."""

    def __init__(self, folder: Path, policy: AnswerPolicy = EVERYBODY) -> None:
        self.folder = folder
        self.tell: Tell = silence
        self.refuse: Callable[[Reply], None] = _nowhere
        self._policy = policy

    def ask(
        self, about: Ask, question: str, options: tuple[str, ...], at: float, kind: str = QUERY
    ) -> dict[str, Any]:
        """Ask it: the id it has, or why it cannot be asked."""
        found = query.asked(self.folder, about, question, options, at, kind)
        if found["asked"]:
            asked = query.find_query(self.folder, found["question_id"])
            if asked is not None:
                self.tell(_notice(asked))
        return found

    def poll(self, query_id: str) -> dict[str, Any]:
        """How a query stands, as its asker is told."""
        return query.polled(self.folder, query_id, self.reply(query_id))

    def reply(self, query_id: str) -> QueryReply | None:
        """What somebody said to it who may."""
        asked = query.find_query(self.folder, query_id)
        found = query.reply_to(self.folder, query_id)
        if asked is None or found is None or found.query_id != query_id:
            return None
        path = query.reply_path(self.folder, query_id)
        problem = self._policy.problem(asked.kind, found.by, owner_of(path))
        if not problem:
            return found
        path.unlink(missing_ok=True)
        reason = f"{problem[:1].upper()}{problem[1:]}."
        content = msgspec.json.encode(found)
        self.refuse(Reply(asked.dispatch_id, content, refused="WrongRole", reason=reason))
        return None


def _notice(asked: AgentQuery) -> Notification:
    words = " ".join(asked.question.split())
    short = words if len(words) <= _SHOWN else f"{words[: _SHOWN - 1]}…"
    choice = "|".join(asked.options) or "ANSWER"
    text = f"{asked.case_id} at {asked.step}: {short} 'interlock answer {asked.query_id} {choice}'"
    about = f"{asked.step}/{asked.query_id}"
    return Notification(
        "query", asked.run_id, asked.asked_at, text, about, (asked.case_id,), (asked.query_id,)
    )
