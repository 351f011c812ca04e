"""The envelope: one launch and its failed items in one JSON document.

Knows the document's keys, those of the first form and those that richer writers add. Refuses to
know files.
"""

import hashlib
from typing import Any

import msgspec

from interlock.rca.failure import Failure
from interlock.rca.launch import Launch, TestCounts
from interlock.rca.sources.build_facts import with_build_facts
from interlock.rca.sources.failure_ids import FailureIds
from interlock.rca.sources.reportportal import rp_items
from interlock.system.errors import SourceError
from interlock.system.moment import rfc3339
from interlock.system.strict_json import Problem, decode_object


def is_envelope(document: Any) -> bool:
    return isinstance(document, dict) and isinstance(document.get("failure_list"), list)


def read_envelope(raw: bytes, name: str) -> tuple[Launch, list[Failure], list[str]]:
    """The launch, its failures and notes; SourceError for what is no envelope."""
    document = decode_object(raw)
    if isinstance(document, Problem):
        raise SourceError(f"{name} is no envelope: {document.sentence}.")
    if not is_envelope(document):
        raise SourceError(f"{name} is no envelope: it has no list `failure_list`.")
    items = rp_items.read_items(document["failure_list"])
    own, notes = rp_items.own_failures(items)
    lost = len(document["failure_list"]) - len(items)
    if lost:
        notes.append(f"{lost} of its failures have no id of their own: not counted")
    launch = _launch(document, hashlib.sha256(raw).hexdigest()[:16])
    names = {item.item_id: item.name for item in items}
    ids = FailureIds()
    failures = [ids.name(rp_items.failure_of_item(item, names, launch.launch_id)) for item in own]
    jobs = rp_items.jobs_of(items, failures)
    tally = rp_items.tally(document.get("statistics")) or TestCounts(failed=len(own) + lost)
    whole = msgspec.structs.replace(launch, jobs=jobs, tally=tally)
    return whole, failures, [f"{name}: {each}" for each in notes]


def _launch(document: dict[str, Any], content: str) -> Launch:
    told = rp_items.attributes(document.get("launch_attributes"))
    told |= rp_items.attributes(document.get("attributes"))
    git = document.get("git")
    git = git if isinstance(git, dict) else {}
    launch = Launch(
        launch_id=rp_items.text(document, "run_id", "launch_id", "launch_uuid") or content,
        name=rp_items.text(document, "name"),
        uuid=rp_items.text(document, "launch_uuid", "uuid"),
        number=rp_items.number(document.get("number")),
        status=rp_items.text(document, "status"),
        started_at=rfc3339(document.get("startTime") or document.get("startTime_iso")),
        ended_at=rfc3339(document.get("endTime") or document.get("endTime_iso")),
        attributes=told,
        branch=rp_items.text(git, "branch"),
        commit=rp_items.text(git, "commit"),
        remote=rp_items.text(git, "remote"),
    )
    return with_build_facts(launch, told)
