"""What templates may use: values a decision read, verdicts on evidence, times for machines."""

from interlock.rca.records import Evidence, FindingStep
from interlock.rca.report.page import (
    choose_verdict_word,
    list_values,
    load_environment,
    read_template,
)
from interlock.system.time import format_rfc3339


def _turn(**read: object) -> FindingStep:
    return FindingStep(step="s", attempt=1, at="", rule="r", to="t", read=read)


def test_values_are_shown_sorted_and_as_json() -> None:
    assert list_values(_turn(b=True, a=0.5, c=["x", 1], d=None, e="plain")) == [
        ("a", "0.5"),
        ("b", "true"),
        ("c", '["x",1]'),
        ("d", "null"),
        ("e", "plain"),
    ]


def test_values_that_are_no_json_are_still_shown() -> None:
    assert list_values(_turn(a=1 + 2j)) == [("a", "(1+2j)")]
    assert list_values(_turn(a=["\ud800"])) == [("a", "['\\ud800']")]


def test_a_verdict_somebody_made_up_is_unchecked() -> None:
    words = [
        choose_verdict_word(Evidence(ref="r", verdict=v)) for v in ("found", "missing", "certain")
    ]
    assert words == ["found", "missing", "unchecked"]


def test_machines_get_iso_times_or_nothing() -> None:
    assert format_rfc3339("2031-03-04T02:00:00+02:00") == "2031-03-04T00:00:00Z"
    assert format_rfc3339("soon") == ""


def test_our_style_and_script_cannot_end_their_element() -> None:
    assert "</" not in read_template("page.css")
    assert "</script" not in read_template("page.js")


def test_every_text_is_escaped_without_being_asked() -> None:
    assert load_environment().from_string("{{ x }}").render(x="<b>") == "&lt;b&gt;"
