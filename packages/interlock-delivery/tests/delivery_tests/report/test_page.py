"""Test that the page of a delivery is well-formed, inert and bounded, with questions on top."""

import base64
import hashlib

import pytest

from delivery_tests.world.delivery_reports import delivered, example, hostile, make_report, many
from interlock_delivery.report.records import DeliveryReport
from interlock_delivery.report.render import CARDS, render_html
from tests.world.page_reader import Page, assert_page_inert, assert_page_sound


@pytest.mark.parametrize(
    "found",
    [example(), hostile(), many(700), delivered(), delivered(make_report(moves=(), proofs=()))],
    ids=["all kinds", "evil", "big", "empty", "bare"],
)
def test_it_is_well_formed_and_inert(found: DeliveryReport) -> None:
    html = render_html(found)
    html.encode()
    read = Page(html)
    assert_page_inert(read)
    assert_page_sound(read)


def test_nothing_but_its_own_style_and_script_may_run() -> None:
    read = Page(render_html(example()))
    policy = next(a["content"] for a in read.all("meta") if "default-src" in a.get("content", ""))
    for kind, part in (("script", read.inside["script"]), ("style", read.inside["style"])):
        digest = base64.b64encode(hashlib.sha256(part.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy


def test_what_needs_a_human_comes_first_then_what_went_wrong() -> None:
    text = Page(render_html(example())).text
    places = [text.index(each) for each in ("Needs a human", "Claims and evidence", "t-1:")]
    assert places == sorted(places)
    order = [text.index(f"{name}: Add it") for name in ("t-1", "t-2", "t-3", "t-4", "t-5", "t-0")]
    assert order == sorted(order)
    assert "1 of 4 claims" in text
    assert "git merge interlock/plan" in text


def test_the_checks_of_a_task_are_a_row_for_each_and_a_column_for_each_look() -> None:
    text = " ".join(Page(render_html(delivered(make_report()))).text.split())
    assert "Check baseline check Tests (native) passed failed exit 1, 3 tests" in text


def test_a_large_run_is_listed_whole_and_told_in_part() -> None:
    read = Page(render_html(many(CARDS + 50)))
    assert len([each for each in read.ids if each.startswith("t") and each[1:].isdigit()]) == CARDS
    assert f"t{CARDS + 49} Add it" in read.text


def test_the_same_records_give_the_same_page() -> None:
    assert render_html(example()) == render_html(example())
