"""What a report of a delivery says first, in which order its tasks come, and its checks as a table.

Pure: records in, words and tables out. Both documents, the page and the Markdown, are made with it.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec

from interlock.delivery.report.records import CheckEvidence, Delivered, TaskReport
from interlock.system.text import counted, span

WORDS: Final = ("failed", "asks", "blocked", "at work", "waits", "complete")
"""Where tasks stand, in the order in which a reader should meet them."""
_OUTCOMES: Final = {
    "COMPLETE": "Every task is written, reviewed, audited, proven and merged.",
    "PARTIAL": "Some of the work is merged; the rest needs a human.",
    "FAILED": "Nothing could be merged.",
    "HALTED": "A human stopped it.",
    "PAUSED": "It rests; run it again and it goes on where it was.",
    "RUNNING": "It is at work.",
    "REMEDIATING": "It is at work on what stops all tasks.",
}


class MatrixCell(msgspec.Struct, frozen=True):
    """One check at one look; without a proof it was not run then."""

    proof: CheckEvidence | None

    @property
    def word(self) -> str:
        return "" if self.proof is None else "passed" if self.proof.passed else "failed"

    @property
    def detail(self) -> str:
        if self.proof is None:
            return ""
        tests = "" if self.proof.tests is None else counted(self.proof.tests, "test")
        code = "" if self.proof.passed else f"exit {self.proof.exit_code}"
        return ", ".join(each for each in (code, tests) if each)


class Matrix(msgspec.Struct, frozen=True):
    """All checks of a task: a column for each look, a row for each check and environment."""

    looks: tuple[str, ...]
    rows: tuple[tuple[str, tuple[MatrixCell, ...]], ...]
    last_failure: CheckEvidence | None


def verdict(told: Delivered) -> str:
    """One or two sentences: how it came out."""
    parts = [_OUTCOMES.get(told.outcome, "")]
    refuted = sum(each.refuted for each in told.accounts)
    if refuted:
        claimed = sum(each.claimed for each in told.accounts)
        parts.append(f"{refuted:,} of {counted(claimed, 'claim')} of agents were not true.")
    return " ".join(each for each in parts if each)


def ordered(told: Delivered) -> list[TaskReport]:
    """What needs a look first; otherwise as the plan has them."""
    return sorted(told.tasks, key=lambda each: WORDS.index(each.word))


def matrix(proofs: Sequence[CheckEvidence]) -> Matrix:
    looks = list(dict.fromkeys((each.stage, each.attempt) for each in proofs))
    cells = {(each.check, each.environment, each.stage, each.attempt): each for each in proofs}
    pairs = list(dict.fromkeys((each.check, each.environment) for each in proofs))
    last = next((each for each in reversed(proofs) if not each.passed), None)
    return Matrix(
        tuple(stage if attempt == 1 else f"{stage} {attempt}" for stage, attempt in looks),
        tuple(
            (
                f"{check} ({place})",
                tuple(MatrixCell(cells.get((check, place, *look))) for look in looks),
            )
            for check, place in pairs
        ),
        last,
    )


def moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")


def lasted(seconds: float) -> str:
    return span(timedelta(seconds=seconds)) if seconds >= 1 else f"{seconds:.1f} s"


def cost(tokens: int, money: float) -> str:
    said = [f"{tokens:,} tokens"] if tokens else []
    return ", ".join(said + ([f"{money:.2f} spent"] if money else []))
