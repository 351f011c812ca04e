"""Open questions, with the groups that one answer settles and the cases that each holds up."""

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Final

import msgspec

from interlock.api.inbox import Question, list_questions
from interlock.api.work import load_circuit
from interlock.engine.circuit import Step
from interlock.journal.address import DatabaseAddress
from interlock.journal.browse import list_needs
from interlock.journal.database import open_reader
from interlock.journal.history import list_families
from interlock.journal.runs import Run, find_run
from interlock.runtime.application import QuestionGroup, find_application
from interlock.system.errors import InterlockError


class InboxEntry(msgspec.Struct, frozen=True):
    """A question with what hangs on it."""

    question: Question
    also: tuple[int, ...] = ()
    """The other questions that an answer for the family settles."""
    case_ids: tuple[str, ...] = ()
    about: str = ""
    """What the questions of a group have in common, in one line."""
    for_family: bool = False
    """True if an answer is for the family by default; then its questions are one entry."""
    blocks: int = 0
    """The number of other cases that wait for this one."""

    @property
    def count(self) -> int:
        """Return the number of questions it stands for."""
        return 1 + len(self.also) if self.for_family else 1


_GOOD_WORDS: Final = ("approve", "accept", "allow", "yes", "raise", "approved")
_BAD_WORDS: Final = ("reject", "refuse", "deny", "stop", "no", "rejected")


def assign_keys(options: Sequence[str]) -> dict[str, str]:
    """Return the key that chooses each decision: `a` and `r` where a decision begins so, else its
    place."""
    keys = {word: str(number) for number, word in enumerate(options, 1) if number < 10}
    for key, words in (("a", _GOOD_WORDS), ("r", _BAD_WORDS)):
        word = next((each for each in words if each in options), None)
        if word is not None:
            keys[word] = key
    return keys


def list_entries(path: DatabaseAddress) -> list[InboxEntry]:
    """Return the entries of everything that waits, the most blocking first; questions that one
    answer settles share an entry."""
    with open_reader(path) as connection:
        questions = list_questions(connection, path)
        runs = {each.run_id for each in questions}
        found = {run_id: find_run(connection, run_id, brief=True) for run_id in sorted(runs)}
        groups = [
            group
            for run_id, run in found.items()
            for group in find_application(run.circuit).group_questions(connection, run_id)
        ]
        families = list_families(connection)
        blocked = _count_blocked(list_needs(connection))
    for_family = {
        (run_id, step.name)
        for run_id, run in found.items()
        for step in _list_steps(run)
        if step.family
    }
    entries = _group_entries(questions, groups, families, for_family)
    counted = [
        msgspec.structs.replace(
            each,
            blocks=sum(
                blocked.get((each.question.run_id, name), 0)
                for name in {each.question.case_id, *each.case_ids}
            ),
        )
        for each in entries
    ]
    return sorted(counted, key=_rank_entry)


def _rank_entry(entry: InboxEntry) -> tuple[bool, int, float, float]:
    question = entry.question
    hangs = entry.blocks + entry.count - 1
    return question.answer_saved, -hangs, question.due_at or float("inf"), question.asked_at


def _group_entries(
    questions: Sequence[Question],
    groups: Sequence[QuestionGroup],
    families: Mapping[int, str],
    for_family: Set[tuple[int, str]],
) -> list[InboxEntry]:
    grouped = {number: group for group in groups for number in group.question_ids}
    alike: dict[tuple[int, str, str], list[int]] = {}
    names = {each.question_id: each.case_id for each in questions}
    for each in questions:
        if isinstance(each.question_id, int) and each.question_id in families:
            key = (each.run_id, each.step, families[each.question_id])
            alike.setdefault(key, []).append(each.question_id)
    entries: list[InboxEntry] = []
    hidden: set[int] = set()
    for each in questions:
        number = each.question_id
        if not isinstance(number, int) or number in hidden:
            entries += [] if isinstance(number, int) else [InboxEntry(each)]
            continue
        group = grouped.get(number)
        if group is not None:
            also = tuple(other for other in group.question_ids if other != number)
        else:
            key = (each.run_id, each.step, families.get(number, ""))
            also = tuple(other for other in alike.get(key, ()) if other != number)
        together = bool(also) and (each.run_id, each.step) in for_family
        hidden.update(also if together else ())
        case_ids = tuple(names.get(other, "") for other in also)
        about = group.about if group else ""
        entries.append(InboxEntry(each, also, case_ids, about, together))
    return entries


def _list_steps(run: Run) -> Iterable[Step]:
    """Return the steps of a run's circuit; none if it cannot be read any more."""
    try:
        return load_circuit(run).steps.values()
    except InterlockError:
        return ()


def _count_blocked(
    needs: Sequence[tuple[int, str, tuple[str, ...]]],
) -> dict[tuple[int, str], int]:
    """Return how many open cases come after each case, directly or not, by run and name."""
    followers: dict[tuple[int, str], list[str]] = {}
    for run_id, case_id, names in needs:
        for name in names:
            followers.setdefault((run_id, name), []).append(case_id)
    found: dict[tuple[int, str], int] = {}
    for run_id, name in followers:
        seen: set[str] = set()
        left = [name]
        while left:
            for follower in followers.get((run_id, left.pop()), ()):
                if follower not in seen:
                    seen.add(follower)
                    left.append(follower)
        found[run_id, name] = len(seen)
    return found
