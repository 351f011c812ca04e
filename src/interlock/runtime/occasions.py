"""Occasions for a notice: gathered while a turn is worked out, told once it is committed.

Each is told when it happens and never again by a later sitting; gates and stuck cases of one family
in one turn are one notice.
"""

import time
from collections.abc import Mapping

from interlock.agents.carrier import Ask
from interlock.engine.case import Case
from interlock.journal.events import Notification, NotificationKind, Tell, joined, many
from interlock.journal.journal import Inquiry, Pause


class EventCollector:
    """What there is to tell about a run."""

    def __init__(self, run_id: int, tell: Tell) -> None:
        self._run_id = run_id
        self._tell = tell
        self._kept: dict[tuple[str, str], Notification] = {}

    def gate(self, ask: Ask) -> None:
        """A human is asked."""
        if ask.case is not None:
            self._of_case("gate", ask.case, ask.step, (ask.dispatch_id,))

    def stuck(self, case: Case) -> None:
        self._of_case("stuck", case, case.step, ())

    def limited(self, pause: Pause) -> None:
        """An account rests."""
        text = f"{pause.account}: rate-limited until {hour(pause.until, pause.at)}"
        self._keep(Notification("rate-limit", 0, 0.0, text, pause.account, until=pause.until))

    def running_low(self, limits: Mapping[str, str]) -> None:
        """Limits are nearly spent: for each, by its word, what is said of it."""
        for word, text in limits.items():
            self._keep(Notification("budget-low", 0, 0.0, text, word))

    def spent(self, inquiry: Inquiry) -> None:
        """The budget is spent, and somebody is asked to raise it."""
        self._keep(
            Notification("budget", 0, 0.0, inquiry.about, "", questions=(inquiry.question_id,))
        )

    def over(self, status: str, ends: Mapping[str, int]) -> None:
        """The run came to its end, and so many of its cases to each of theirs."""
        shown = "".join(f"; {many} {end}" for end, many in sorted(ends.items()))
        self._keep(Notification("over", 0, 0.0, f"run {self._run_id}: {status}{shown}", status))

    def hand_over(self, at: float) -> None:
        """It is committed: tell it."""
        if self._kept:
            kept, self._kept = self._kept, {}
            for each in kept.values():
                self._tell(
                    Notification(
                        *(each.event, self._run_id, at, each.text, each.about, each.cases),
                        *(each.questions, each.until),
                    )
                )

    def _of_case(
        self, event: NotificationKind, case: Case, step: str, questions: tuple[int, ...]
    ) -> None:
        family = case.input.get("family")
        about = f"{step}/{family if isinstance(family, str | int) else case.case_id}"
        cases = (case.case_id,)
        text = many(event, about, cases, questions)
        self._keep(Notification(event, 0, 0.0, text, about, cases, questions))

    def _keep(self, notice: Notification) -> None:
        key = (notice.event, notice.about)
        before = self._kept.get(key)
        self._kept[key] = notice if before is None else joined(before, notice)


def hour(at: float, now: float) -> str:
    """A moment as people say it: the hour if it is today, else the day too."""
    then, today = time.localtime(at), time.localtime(now)
    same_day = then[:3] == today[:3]
    return time.strftime("%H:%M" if same_day else "%Y-%m-%d %H:%M", then)
