"""The published corpus: every sentence of the rules on text and line signals, as transcripts.

docs/protocols/corpus.jsonl is the table: one record per line in the form of `lint --jsonl`, with
the `rule` it is about and what to `expect` of it: a signal's name, a reason, or a list of them.
"""

import json
from collections import Counter
from typing import Any

import jsonschema
import msgspec

from docs.pages.protocols import render_pages
from docs.pages.schemas import build_schemas
from interlock.signals.catalogue import list_signals
from interlock.signals.reading import Reason
from interlock.testing.transcript import Record, TranscriptVerdict, check_transcript, read_record
from tests.world.places import ROOT

CORPUS = ROOT / "docs" / "protocols" / "corpus.jsonl"
LINES = CORPUS.read_text(encoding="utf-8").splitlines()
ROWS: list[dict[str, Any]] = [json.loads(line) for line in LINES]
TEXT_RULES = {f"text {number}" for number in range(1, 13)}
LINE_RULES = {f"lines {number}" for number in range(1, 6)}


def word(verdict: TranscriptVerdict | None) -> str | None:
    assert verdict is not None
    return verdict.accepted["signal"] if verdict.accepted else verdict.refused


def test_the_corpus_is_read_as_it_says() -> None:
    wrong = [
        f"{row['id']} ({row['rule']}): expected {row['expect']}, got {found}"
        for line, row in zip(LINES, ROWS, strict=True)
        if (found := read(line, row["expect"])) != row["expect"]
    ]
    assert not wrong, "\n".join([f"{len(wrong)} of {len(ROWS)} are read otherwise:", *wrong])


def read(line: str, expected: object) -> object:
    """What a reader makes of a record, in the form in which it is expected."""
    record = read_record(line.encode(), Record(id=""))
    if isinstance(record, str):
        return record
    judged = check_transcript(record)
    if isinstance(expected, list):
        return None if judged.lines is None else [word(one) for one in judged.lines]
    return word(judged.message)


def test_every_rule_has_its_rows() -> None:
    counts = Counter(row["rule"] for row in ROWS)
    assert set(counts) == TEXT_RULES | LINE_RULES
    assert len(ROWS) >= 300
    assert len({row["id"] for row in ROWS}) == len(ROWS)


def test_every_signal_and_every_reason_is_there() -> None:
    flat = [
        e for row in ROWS for e in (row["expect"] if row["rule"][0] == "l" else [row["expect"]])
    ]
    assert {row.name for row in list_signals("text") if row.key != "unknown"} <= set(flat)
    assert {reason.value for reason in Reason} <= set(flat)


def test_what_is_accepted_fits_its_published_schema() -> None:
    known = build_schemas()
    for line in LINES:
        record = read_record(line.encode(), Record(id=""))
        assert isinstance(record, Record)
        judged = check_transcript(record)
        for verdict in [judged.message, *(judged.lines or ())]:
            if verdict and verdict.accepted:
                name = verdict.accepted["signal"]
                jsonschema.validate(
                    verdict.accepted, known.get(name) or known[f"SAGE_SIGNAL:{name}"]
                )


def test_the_pages_number_their_rules_as_the_corpus_cites_them() -> None:
    pages = render_pages()
    for rule in TEXT_RULES | LINE_RULES:
        kind, number = rule.split()
        page = pages["text-signals.md" if kind == "text" else "line-signals.md"]
        assert f"\n### {number}. " in page


def test_no_pass_is_heard_from_a_record_that_expects_none() -> None:
    """What is no pass for its own task is none for another task either."""
    passing = {row.name for row in list_signals("text") if row.passing}
    for line, row in zip(LINES, ROWS, strict=True):
        if row["rule"].startswith("text") and row["expect"] not in passing:
            record = read_record(line.encode(), Record(id=""))
            assert isinstance(record, Record)
            other = check_transcript(msgspec.structs.replace(record, task_id="other-task"))
            received = word(other.message)
            assert received not in passing - {"REMEDIATION_COMPLETE", "HEALTH_AUDIT: HEALTHY"}
