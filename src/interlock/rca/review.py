"""Reviews: which questions one human's answer settles. A family is reviewed together."""

import msgspec
from sqlalchemy import Connection

from interlock.rca.knowledge.knowledge import rca
from interlock.rca.knowledge.looks import CaseView, open_reviews, place_of
from interlock.rca.knowledge.suites import find_suite

_ABOUT = 100


class Review(msgspec.Struct, frozen=True):
    """Questions that one answer settles, and what they are about."""

    question_ids: list[int]
    case_ids: list[str]
    about: str


def reviews_of(connection: Connection, run_id: int) -> list[Review]:
    """What waits for review in a run, family by family; nothing if it is no investigation."""
    if find_suite(connection, run_id=run_id) is None:
        return []
    groups: dict[tuple[str, object], list[tuple[int, CaseView]]] = {}
    for number, look in open_reviews(connection, run_id).items():
        groups.setdefault(_key(connection, look), []).append((number, look))
    return [
        Review(
            [number for number, _ in members],
            [look.case_id for _, look in members],
            _about(connection, members[0][1]),
        )
        for members in groups.values()
    ]


def _about(connection: Connection, look: CaseView) -> str:
    place = place_of(connection, look.case_no)
    cause = rca(connection, place.rca_id) if place and place.rca_id else None
    said = cause.title if cause else str(look.input.get("message") or look.input.get("test_name"))
    return " ".join(said.split())[:_ABOUT]


def reviewed_with(connection: Connection, run_id: int, question_id: int) -> dict[int, str]:
    """The other open questions about the same root cause or, where there is none yet, about the
    same family: each with its case."""
    reviews = open_reviews(connection, run_id)
    if question_id not in reviews:
        return {}
    key = _key(connection, reviews[question_id])
    return {
        number: look.case_id
        for number, look in reviews.items()
        if number != question_id and _key(connection, look) == key
    }


def _key(connection: Connection, look: CaseView) -> tuple[str, object]:
    place = place_of(connection, look.case_no)
    if place and place.rca_id:
        return "rca", place.rca_id
    return "family", look.input.get("family") or look.case_no
