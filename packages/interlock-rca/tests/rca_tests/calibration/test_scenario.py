"""Scenarios as files: both forms, and everything that is none."""

import json
from pathlib import Path

import pytest
import yaml

from interlock.system.errors import SourceError
from interlock_rca.calibration.scenario import (
    MAX_BYTES,
    find_scenario,
    list_shipped_scenarios,
    read_scenario,
)
from rca_tests.calibration.worlds import small


def test_json_and_yaml_give_the_same_scenario() -> None:
    as_json = read_scenario(json.dumps(small()).encode(), "s.json")
    as_yaml = read_scenario(yaml.safe_dump(small(), sort_keys=False).encode(), "s.yaml")
    assert as_json == as_yaml
    assert as_json.scenario.digest == as_yaml.scenario.digest
    assert as_json.unread == ()


def test_null_is_absent_and_the_envelope_is_taken_off() -> None:
    plain = small()
    plain["rcas"][0]["affected_versions"] = None
    plain["cases"][0]["expected_triage"]["candidate_repos"] = None
    plain["source_pack"] = plain.pop("workspace")
    name = plain.pop("name")
    wrapped = {"kind": "scenario", "version": 2, "metadata": {"name": name, "owner": "x"}, **plain}
    found = read_scenario(json.dumps(wrapped).encode(), "s.json").scenario
    assert found.name == "small"
    assert found.causes["R1"].affected_versions == ()
    assert [repo.name for repo in found.workspace.repos] == ["core", "web"]


def test_fields_that_nobody_reads_are_named_and_run_time_ones_are_known() -> None:
    plain = small()
    plain["colour"] = "red"
    plain["cases"][1]["expected_recall"]["certainty"] = 1
    plain["cases"][0]["rp_issue_type"] = "pb001"
    plain["cases"][0]["test_id"] = 83297
    unread = read_scenario(json.dumps(plain).encode(), "s.json").unread
    assert unread == ("cases[1].expected_recall.certainty", "colour")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "empty"),
        (b"{", "not valid JSON"),
        (b"[]", "a scenario is an object"),
        (b"just words", "a scenario is an object"),
        (b'{"name": "x"}', "cases are missing"),
        (b'{"cases": []}', "missing required field name"),
        (b'{"name": "x", "cases": [{"id": 7}]}', r"quotes around it"),
        (b'{"name": "x", "cases": [{"id": "C", "split": "dev"}]}', "split"),
        (b'{"name": "x", "cases": {}}', "cases"),
        (b"name: \xff\xfe", "not UTF-8"),
        (b"[" * 100_000, "JSON"),
        (b'{"a":' * 100_000, "JSON"),
        (b"a: &x [1]\nb: *x\n", "anchors"),
        (b"name: x\nname: y\n", "written twice"),
        (b"name: x\ncases:\n  - id: C\n    version: 4.20\n", r"version; put quotes around it"),
        (b"name: \x00", "YAML"),
        (b" " * (MAX_BYTES + 1), "bytes"),
        (b"name: " + b"x" * 4_000_001, "write it as JSON"),
    ],
    ids=range(18),
)
def test_what_is_no_scenario_is_told_in_one_sentence(content: bytes, says: str) -> None:
    with pytest.raises(SourceError, match=says) as output:
        read_scenario(content, "file")
    assert "\n" not in str(output.value)
    assert len(str(output.value)) < 300


def test_shipped_ones_are_found_by_name_and_others_by_path(tmp_path: Path) -> None:
    assert list_shipped_scenarios() == [
        "data-pipeline",
        "mobile-backend",
        "network-daemon",
        "web-shop",
    ]
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(small()))
    assert find_scenario(str(path)).scenario.name == "small"
    with pytest.raises(SourceError, match="no scenario or file 'nowhere'; scenarios are data-pipe"):
        find_scenario("nowhere")
    with pytest.raises(SourceError, match="no scenario or file"):
        find_scenario(str(tmp_path))
