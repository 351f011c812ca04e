"""Audit RCA's tables for what no constraint of one table can promise.

A table of queries and functions, each returning the subjects that break its rule. Foreign keys
among these tables are checked with all others.
"""

from collections.abc import Iterator

import msgspec

from interlock.journal.audit import AuditRules
from interlock.journal.connection import RawConnection

_JSON_COLUMNS = (
    ("case", "case_no", "rca_cases", ("bands", "notes", "draft")),
    ("case", "case_no", "triages", ("candidate_repos",)),
    ("root cause", "rca_id", "rcas", ("affected_versions", "evidence")),
    ("launch", "launch_id", "launches", ("env_attributes", "payload")),
)


def _find_unreadable(raw: RawConnection) -> Iterator[str]:
    for subject, key, table, columns in _JSON_COLUMNS:
        rows = raw.execute(f"select {key}, {', '.join(columns)} from {table} order by 1")  # noqa: S608
        for number, *texts in rows:
            try:
                for text in texts:
                    msgspec.json.decode(text)
            except (msgspec.DecodeError, TypeError, RecursionError):
                yield f"{subject} {number}"


KNOWLEDGE_RULES: AuditRules = {
    "rca.suite": (
        (
            "select 'case ' || r.case_no from rca_cases r join cases e on e.case_no = r.case_no"
            " join launches l on l.launch_id = r.launch_id"
            " join circuits c on c.circuit_id = l.circuit_id"
            " join suites s on s.suite_id = c.suite_id where s.run_id != e.run_id"
        ),
        "its launch is of another suite than its run",
    ),
    "rca.missing": (
        (
            "select 'case ' || e.case_no from suites s join cases e on e.run_id = s.run_id"
            " left join rca_cases r on r.case_no = e.case_no where r.case_no is null"
        ),
        "it is a case of a suite, and no failed test",
    ),
    "rca.early": (
        (
            "select 'case ' || r.case_no from rca_cases r join cases e on e.case_no = r.case_no"
            " where r.status = 'closed' and e.status = 'open'"
        ),
        "it is closed, yet its steps have not come to an end",
    ),
    "rca.unreviewed": (
        (
            "select 'case ' || r.case_no from rca_cases r"
            " where r.decision = '' and r.status in ('reviewed', 'closed')"
        ),
        "it is closed, and nobody reviewed it",
    ),
    "rca.closed": (
        (
            "select distinct 'suite ' || s.suite_id from suites s"
            " join circuits c on c.suite_id = s.suite_id"
            " join launches l on l.circuit_id = c.circuit_id"
            " join rca_cases r on r.launch_id = l.launch_id"
            " where s.status = 'closed' and r.status != 'closed'"
        ),
        "it is closed, and one of its cases is not",
    ),
    "rca.unlinked": (
        (
            "select 'case ' || r.case_no from rca_cases r left join symptom_rca l"
            " on l.symptom_id = r.symptom_id and l.rca_id = r.rca_id"
            " where r.symptom_id is not null and r.rca_id is not null and l.rca_id is null"
        ),
        "its symptom and its root cause are not linked to each other",
    ),
    "rca.orphan": (
        (
            "select 'root cause ' || a.rca_id from rcas a"
            " left join rca_cases r on r.case_no = a.case_no"
            " where a.status = 'open' and (r.rca_id is null or r.rca_id != a.rca_id)"
        ),
        "it is open, and its case has another one or none",
    ),
    "rca.uncounted": (
        (
            "select 'case ' || r.case_no from rca_cases r left join sightings n"
            " on n.symptom_id = r.symptom_id and n.case_no = r.case_no"
            " where r.symptom_id is not null and n.case_no is null"
        ),
        "it reports a symptom that does not count it",
    ),
    "rca.count": (
        (
            "select 'symptom ' || s.symptom_id from symptoms s where s.occurrence_count <"
            " (select count(*) from sightings n where n.symptom_id = s.symptom_id)"
        ),
        "it was seen more often than it says",
    ),
    "rca.unreadable": (_find_unreadable, "a part of it cannot be read"),
}
