"""Turn the failures of sources into cases with features and families.

Cases are named C1, C2 and so on within their suite. A failure that the suite has already, word for
word, is no new case, even if it comes again in a larger report.
"""

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from interlock.journal.connection import Connection
from interlock.journal.runs import NewCase, NewRun
from interlock_rca.analyst.cluster import find_families
from interlock_rca.analyst.evidence import make_excerpt
from interlock_rca.analyst.masking import compute_fingerprint, mask_text
from interlock_rca.analyst.similarity import (
    Traits,
    compute_bands,
    decode_traits,
    encode_traits,
    extract_traits,
)
from interlock_rca.knowledge.intake import Arrival, FailedCase, NewSuite, begin_suite
from interlock_rca.records import Failure, Launch
from interlock_rca.sources.read import SourceLaunch

_LONGEST_PATTERN = 2_000
_LONGEST_EXCERPT = 4_000
_VOLATILE = ("id", "launch")
_encode = msgspec.json.Encoder(order="sorted").encode


class KnownFailures(msgspec.Struct, frozen=True):
    """The features and family of a case that the suite has already."""

    content: str
    features: str
    family: str


class _NewFailure(msgspec.Struct, frozen=True):
    failure: Failure
    traits: Traits
    fingerprint: str
    content: str


def make_arrivals(
    intakes: Sequence[SourceLaunch], known: Sequence[KnownFailures] = ()
) -> list[Arrival]:
    """Return the new failures as cases to be written."""
    seen = {each.content for each in known}
    fresh = [list(_filter_new(intake.failures, seen)) for intake in intakes]
    family_of = _assign_families([new for some in fresh for new in some], known)
    number = len(known)
    found: list[Arrival] = []
    for intake, some in zip(intakes, fresh, strict=True):
        cases = _NewCases(some, number, family_of)
        number += len(some)
        found.append(
            Arrival(launch=intake.launch, cases=cases, rp_launch_id=_read_rp_id(intake.launch))
        )
    return found


def count_cases(arrivals: Iterable[Arrival]) -> int:
    """Count the cases without making them."""
    return sum(len(each.cases) for each in arrivals if isinstance(each.cases, Collection))


class _NewCases(Collection[FailedCase]):
    """Cases made one by one when they are written, because all at once are large."""

    def __init__(
        self, some: Sequence[_NewFailure], number: int, family_of: Mapping[str, str]
    ) -> None:
        self._some = some
        self._number = number
        self._family_of = family_of

    def __len__(self) -> int:
        return len(self._some)

    def __iter__(self) -> Iterator[FailedCase]:
        for number, new in enumerate(self._some, self._number + 1):
            yield _make_case(f"C{number}", new, self._family_of[new.content])

    def __contains__(self, item: object) -> bool:
        return any(item == each for each in self)


def hash_failure(failure: Failure) -> str:
    """Return a hash of everything known about a failure, whatever launch it came in."""
    kept = {name: value for name, value in encode_failure(failure).items() if name not in _VOLATILE}
    return hashlib.sha256(_encode([failure.id, kept])).hexdigest()[:32]


def encode_failure(failure: Failure) -> dict[str, Any]:
    """Return a failure as a case's input, without empty fields."""
    fields = msgspec.to_builtins(failure)
    return {name: value for name, value in fields.items() if value}


def decode_failure(case_id: str, given: Mapping[str, Any]) -> Failure:
    """Return the failure in a case's input, without invalid fields."""
    fields = {name: value for name, value in given.items() if name in Failure.__struct_fields__}
    fields["id"] = str(fields.get("id", case_id))
    try:
        return msgspec.convert(fields, Failure)
    except msgspec.ValidationError:
        valid = {name: value for name, value in fields.items() if _is_valid(name, value)}
        return msgspec.convert(valid, Failure)


def _is_valid(name: str, value: Any) -> bool:
    try:
        msgspec.convert({"id": "", name: value}, Failure)
    except msgspec.ValidationError:
        return False
    return True


def begin_cases(connection: Connection, new: NewRun, cases: Iterable[NewCase]) -> int:
    """Begin a run of cases that a user listed, as a suite with one launch; return its number."""
    written = list(cases)
    # Its name distinguishes a failure from the others of the file.
    failures = [
        decode_failure(case.case_id, {**case.input, "id": case.case_id}) for case in written
    ]
    new_failures = [_describe_failure(failure, hash_failure(failure)) for failure in failures]
    family_of = _assign_families(new_failures, ())
    failed = [
        _make_case(case.case_id, failure, family_of[failure.content], case)
        for case, failure in zip(written, new_failures, strict=True)
    ]
    launch = Launch(launch_id=new.fingerprint[:16], name=new.source)
    opened = begin_suite(
        connection,
        NewSuite(run=new, name=new.source),
        [Arrival(launch=launch, cases=failed)],
    )
    return opened.run_id


def _filter_new(failures: Iterable[Failure], known: Collection[str]) -> Iterator[_NewFailure]:
    seen = set(known)
    for failure in failures:
        content = hash_failure(failure)
        if content not in seen:
            seen.add(content)
            yield _describe_failure(failure, content)


def _describe_failure(failure: Failure, content: str) -> _NewFailure:
    # Together: both read the same stack, and mask the same message.
    return _NewFailure(failure, extract_traits(failure), compute_fingerprint(failure), content)


def _assign_families(
    new_failures: Sequence[_NewFailure], known: Sequence[KnownFailures]
) -> dict[str, str]:
    """Return the family of each new failure by its content; one that joins known cases gets
    theirs."""
    if not new_failures:
        return {}
    traits = [decode_traits(each.features) for each in known] + [new.traits for new in new_failures]
    names: dict[str, str] = {}
    for members in find_families(traits):
        before = [known[at].family for at in members if at < len(known)]
        new = [new_failures[at - len(known)] for at in members if at >= len(known)]
        # A test that passed on retry says nothing about why similar ones fail.
        steady = [each for each in new if not each.failure.attributes.get("flaky")]
        flaky = [each for each in new if each.failure.attributes.get("flaky")]
        if steady:
            name = before[0] if before else steady[0].content[:12]
            names |= dict.fromkeys((each.content for each in steady), name)
        names |= dict.fromkeys(
            (each.content for each in flaky), flaky[0].content[:12] if flaky else ""
        )
    return names


def _make_case(
    case_id: str, new: _NewFailure, family: str, given: NewCase | None = None
) -> FailedCase:
    failure = new.failure
    fields = given.input if given else encode_failure(failure)
    return FailedCase(
        case_id=case_id,
        input={**fields, "family": family, "content": new.content},
        priority=given.priority if given else 0,
        needs=given.needs if given else (),
        failure=failure,
        fingerprint=new.fingerprint,
        error_pattern=mask_text(failure.message)[:_LONGEST_PATTERN],
        test_name_pattern=mask_text(failure.test_name)[:_LONGEST_PATTERN],
        bands=compute_bands(new.traits),
        features=encode_traits(new.traits),
        excerpt=make_excerpt(failure.log, _LONGEST_EXCERPT)[0],
    )


def _read_rp_id(launch: Launch) -> int | None:
    return int(launch.launch_id) if launch.project and launch.launch_id.isdecimal() else None
