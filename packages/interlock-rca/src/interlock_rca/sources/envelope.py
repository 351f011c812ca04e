"""Read failures in JSON: the envelope (one launch with its failed items) and JSON lines.

Nothing is trusted: parts may be missing or null. Also gives failures their ids: unique in their
launch, readable, fit for a file name, and the same for the same report.
"""

import hashlib
import re
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from interlock.system.errors import SourceError
from interlock.system.strict_json import Problem, read_object
from interlock.system.test_output import TestCounts
from interlock.system.text import clip_text
from interlock.system.time import format_rfc3339
from interlock_rca.records import Failure, Launch
from interlock_rca.sources.build_facts import add_build_facts
from interlock_rca.sources.reportportal import items as rp_items

_MOST_NOTES: Final = 5


def read_failures(lines: Iterable[str], name: str) -> tuple[list[Failure], list[str]]:
    """Return the failures in the lines, and notes on lines without one."""
    found: list[Failure] = []
    bad: list[str] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            found.append(_decode_failure(msgspec.json.decode(line)))
        except (msgspec.MsgspecError, RecursionError, TypeError) as error:
            bad.append(f"{name}:{number}: skipped, not a failure: {error}")
    if len(bad) > _MOST_NOTES:
        bad = [*bad[:_MOST_NOTES], f"{name}: {len(bad) - _MOST_NOTES} more lines are not failures"]
    return found, bad


def _decode_failure(row: Any) -> Failure:
    if not isinstance(row, dict):
        raise TypeError("it is not an object")
    fields = {key: value for key, value in row.items() if value is not None}
    fields["id"] = str(fields.get("id", ""))
    facts = fields.get("attributes", {})
    if isinstance(facts, dict):
        fields["attributes"] = {key: _encode_value(value) for key, value in facts.items()}
    failure = msgspec.convert(fields, Failure, strict=False)
    log, log_cut = clip_text(failure.log)
    stack, stack_cut = clip_text(failure.stack)
    return msgspec.structs.replace(
        failure,
        log=log,
        stack=stack,
        log_truncated=failure.log_truncated or log_cut or stack_cut,
    )


def _encode_value(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


_LONGEST: Final = 80
"""Short enough for a file name with `#12` appended."""
_FIT: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._#-]{0,119}")
_UNFIT: Final = re.compile(r"[^A-Za-z0-9._-]+")


class FailureNamer:
    """Gives each failure an id that is unique in its launch."""

    def __init__(self) -> None:
        self._given: dict[str, int] = {}
        self._jobs: dict[str, str] = {}

    def assign_id(self, failure: Failure) -> Failure:
        """Return the failure with its id: `class.test`, with its job in front or `#2` behind where
        needed."""
        base = _make_slug(_format_full_name(failure))
        if self._jobs.setdefault(base, failure.job) != failure.job:
            base = _make_slug(f"{failure.job}.{_format_full_name(failure)}")
        number = self._given.get(base, 0) + 1
        while number > 1 and f"{base}#{number}" in self._given:
            number += 1
        self._given[base] = number
        found = base if number == 1 else f"{base}#{number}"
        self._given.setdefault(found, 1)
        return msgspec.structs.replace(failure, id=found)

    def keep_id(self, failure: Failure) -> Failure:
        """Return the failure under its own id if that is valid and free."""
        if not _FIT.fullmatch(failure.id) or failure.id in self._given:
            return self.assign_id(failure)
        self._given[failure.id] = 1
        return failure


def _format_full_name(failure: Failure) -> str:
    test, owner = failure.test_name, failure.class_name
    if not owner or test == owner or test.startswith(f"{owner}."):
        return test or failure.job or "test"
    return f"{owner}.{test}" if test else owner


def _make_slug(name: str) -> str:
    """Return text fit for an id; lost characters are replaced by a hash of the full name."""
    slug = _UNFIT.sub("-", name).strip("-.")
    lost = len(slug) > _LONGEST or any(ord(character) > 127 for character in name) or not slug
    if not lost:
        return slug if slug[0].isalnum() else f"t{slug}"
    mark = hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()[:8]
    head = slug[: _LONGEST - 9].strip("-._") or "test"
    return f"{head if head[0].isalnum() else f't{head}'}-{mark}"


def is_envelope(document: Any) -> bool:
    return isinstance(document, dict) and isinstance(document.get("failure_list"), list)


def read_envelope(raw: bytes, name: str) -> tuple[Launch, list[Failure], list[str]]:
    """Return the launch, its failures and notes. Raise SourceError for anything but an envelope."""
    document = read_object(raw)
    if isinstance(document, Problem):
        raise SourceError(f"{name} is not an envelope: {document.sentence}.")
    if not is_envelope(document):
        raise SourceError(f"{name} is not an envelope: it has no list `failure_list`.")
    items = rp_items.read_items(document["failure_list"])
    own, notes = rp_items.filter_own_failures(items)
    lost = len(document["failure_list"]) - len(items)
    if lost:
        notes.append(f"{lost} of its failures have no id of their own: not counted")
    launch = _read_launch(document, hashlib.sha256(raw).hexdigest()[:16])
    names = {item.item_id: item.name for item in items}
    ids = FailureNamer()
    failures = [
        ids.assign_id(rp_items.build_failure(item, names, launch.launch_id)) for item in own
    ]
    jobs = rp_items.build_jobs(items, failures)
    tally = rp_items.read_counts(document.get("statistics")) or TestCounts(failed=len(own) + lost)
    complete = msgspec.structs.replace(launch, jobs=jobs, tally=tally)
    return complete, failures, [f"{name}: {note}" for note in notes]


def _read_launch(document: dict[str, Any], content: str) -> Launch:
    attributes = rp_items.read_attributes(document.get("launch_attributes"))
    attributes |= rp_items.read_attributes(document.get("attributes"))
    git = document.get("git")
    git = git if isinstance(git, dict) else {}
    launch = Launch(
        launch_id=rp_items.read_text(document, "run_id", "launch_id", "launch_uuid") or content,
        name=rp_items.read_text(document, "name"),
        uuid=rp_items.read_text(document, "launch_uuid", "uuid"),
        number=rp_items.read_number(document.get("number")),
        status=rp_items.read_text(document, "status"),
        started_at=format_rfc3339(document.get("startTime") or document.get("startTime_iso")),
        ended_at=format_rfc3339(document.get("endTime") or document.get("endTime_iso")),
        attributes=attributes,
        branch=rp_items.read_text(git, "branch"),
        commit=rp_items.read_text(git, "commit"),
        remote=rp_items.read_text(git, "remote"),
    )
    return add_build_facts(launch, attributes)
