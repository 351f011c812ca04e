"""Verdicts, row by row, each with its reasons."""

from typing import Any

import pytest

from interlock.carriers.cli.health import HealthFacts, HealthWord, assess_health

CALM: dict[str, Any] = {
    "state": "S",
    "age": 400.0,
    "stream_age": 5.0,
    "has_spoken": True,
    "silence": 600.0,
}


@pytest.mark.parametrize(
    ("word", "change", "reason"),
    [
        ("working", {}, "its last byte came 5 s ago"),
        ("working", {"stream_age": 200.0, "cpu_share": 0.5}, "it uses 50% of a core"),
        (
            "working",
            {"stream_age": 500.0, "tools": (("t1", 499.0),), "silence": 1800.0},
            "tool t1 is open for 499 s",
        ),
        ("working", {"state": "D"}, "it waits in the kernel (state D)"),
        ("idle", {"stream_age": 200.0, "cpu_share": 0.001}, "it uses 0% of a core"),
        ("idle", {"stream_age": 200.0, "children": 1}, "1 process under it"),
        ("idle", {"has_spoken": False}, "it has said nothing since it started 400 s ago"),
        ("idle", {"result_age": 4.0}, "it gave its result 4 s ago and has not exited"),
        ("idle", {"state": "T"}, "it is stopped by a signal (state T)"),
        (
            "silent",
            {"stream_age": 901.0, "tools": (("t1", 999.0),), "silence": 1800.0},
            "tool t1 is open for 999 s",
        ),
        ("silent", {"silence": 8.0}, "its last byte came 5 s ago"),
        ("working", {"stream_age": 301.0, "cpu_share": 0.9}, "it uses 90% of a core"),
        ("silent", {"stream_age": 301.0}, "its last byte came 301 s ago"),
        ("silent", {"stream_age": 301.0, "is_mute": True}, "its stdout is closed"),
        ("waiting-for-permission", {"permission": "Bash rm"}, "it asks for permission: Bash rm"),
        (
            "waiting-for-permission",
            {"permission": ""},
            "it asks for permission: no details given",
        ),
        (
            "rate-limited",
            {"limited": True, "resets_in": 90.0},
            "its account is rate-limited for 90 s more",
        ),
        (
            "rate-limited",
            {"limited": True},
            "its account is rate-limited, with no known end",
        ),
        ("working", {"limited": True, "resets_in": -3.0}, "its rate limit ended 3 s ago"),
        ("working", {"slept": 3600.0}, "the machine slept for 3600 s meanwhile"),
        ("dead", {"state": ""}, "its process is gone"),
        ("dead", {"state": "Z", "limited": True, "permission": "x"}, "its process is gone"),
    ],
)
def test_words_and_reasons(word: HealthWord, change: dict[str, Any], reason: str) -> None:
    found = assess_health(HealthFacts(**{**CALM, **change}))
    assert found.word == word
    assert reason in found.reasons


def test_facts_that_disagree_are_all_told() -> None:
    facts = HealthFacts(
        **{**CALM, "limited": True, "permission": "rm", "cpu_share": 0.9, "children": 3}
    )
    assert assess_health(facts).reasons == (
        "its account is rate-limited, with no known end",
        "it asks for permission: rm",
        "its last byte came 5 s ago",
        "it uses 90% of a core",
        "3 processes under it",
    )


def test_words_of_an_agent_are_short_and_plain() -> None:
    tools = tuple((f"\x1b[2J{number}\n" + "x" * 10_000, 1.0) for number in range(1_000))
    found = assess_health(
        HealthFacts(**{**CALM, "tools": tools, "permission": "\x1b]0;a\x07\u202e"})
    ).reasons
    assert "it asks for permission: ?]0;a??" in found
    assert "997 more tools are open" in found
    assert all(reason.isprintable() and len(reason) < 300 for reason in found)
