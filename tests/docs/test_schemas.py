"""The JSON Schemas hold for what the readers give and the encoders write."""

import json
import re

import jsonschema
import msgspec
import pytest

from docs.pages.schemas import build_schemas, name_schema_file
from interlock.signals.catalogue import list_signals
from interlock.signals.lines import LineReader, LineSignal
from interlock.signals.reading import Accepted
from interlock.signals.text import read_message
from interlock.testing.transcript import build_line_verdict
from tests.world.places import ROOT

GOLDEN = ROOT / "packages/interlock/tests/kernel_tests/signals/golden"
SAID = [
    (
        "developer",
        "READY_FOR_REVIEW: t1\n\nFiles Modified:\n- a.py: x\n\nVerification Results:\n- y: PASS\n",
    ),
    ("critic", "REVIEW_FAILED: t1\n\nIssues Found:\n- a.py:1: x\n- y\n\nPriority: LOW\n"),
    ("auditor", "AUDIT_PASSED: t1\n\nVerification Results:\n- a: VERIFIED - b\n"),
    ("health-auditor", "HEALTH_AUDIT: UNHEALTHY\n"),
    ("developer", "SEEKING_DIVINE_CLARIFICATION\n\nQuestion: x\n"),
    ("developer", "FILE CONFLICT: a b.py\n\nCan Wait: NO\n"),
    ("expert", "EXPERT_ADVICE: r/1#2\n\nRecommendation: x\n\nRationale:\n- y\n"),
]


def test_every_schema_is_one() -> None:
    for schema in build_schemas().values():
        jsonschema.Draft202012Validator.check_schema(schema)


def test_there_is_a_schema_for_every_signal() -> None:
    names = set(build_schemas())
    assert {row.name for row in list_signals("text") if row.key != "unknown"} <= names
    assert {f"SAGE_SIGNAL:{row.name}" for row in list_signals("line")} <= names


@pytest.mark.parametrize(("role", "text"), SAID)
def test_accepted_signals_fit_their_schema(role: str, text: str) -> None:
    reading = read_message(text, role=role, task_id=None)
    assert isinstance(reading, Accepted)
    plain = msgspec.to_builtins(reading)
    jsonschema.validate(plain, build_schemas()[reading.signal])


def test_a_schema_wants_the_required_sections() -> None:
    bare = {"signal": "AUDIT_PASSED", "subject": "t1", "fields": {}}
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(bare, build_schemas()["AUDIT_PASSED"])


def test_line_signals_fit_their_schema() -> None:
    reader = LineReader()
    found = reader.feed("SAGE_SIGNAL:CHECKPOINT:e:s:p:t\nSAGE_SIGNAL:HITL_APPROVED:issue:4\n")
    assert len(found) == 2
    for one in found:
        assert isinstance(one, LineSignal)
        accepted = build_line_verdict(one).accepted
        jsonschema.validate(accepted, build_schemas()[f"SAGE_SIGNAL:{one.type}"])


@pytest.mark.parametrize(
    ("file", "schema"),
    [
        ("signal.json", "signal.json"),
        ("signal-error.json", "signal.json"),
        ("artifact.json", "artifact"),
        ("batch-manifest.json", "batch-manifest.json"),
        ("budget-status.json", "budget-status.json"),
    ],
)
def test_the_seeds_files_fit_their_schema(file: str, schema: str) -> None:
    jsonschema.validate(json.loads((GOLDEN / file).read_text()), build_schemas()[schema])


@pytest.mark.parametrize(
    ("number", "fits"), [(2**63 - 1, True), (2**63, False), (-(2**63), True), (-(2**63) - 1, False)]
)
def test_ids_of_files_have_64_bits(number: int, fits: bool) -> None:
    validator = jsonschema.Draft202012Validator(build_schemas()["artifact"])
    assert validator.is_valid({"dispatch_id": number, "data": {}}) is fits


def test_every_schema_has_a_file_of_its_own() -> None:
    names = [name_schema_file(name) for name in build_schemas()]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[A-Za-z_/-]+\.schema\.json", name) for name in names)
