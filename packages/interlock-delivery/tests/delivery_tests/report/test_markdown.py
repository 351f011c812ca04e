"""Test that the Markdown of a delivery is inert, bounded, and complete if it is small."""

import pytest

from delivery_tests.world.delivery_reports import delivered, example, hostile, make_report, many
from interlock_delivery.report.records import DeliveryReport
from interlock_delivery.report.render import ROOM, render_markdown
from tests.world.markdown_markup import assert_inert


@pytest.mark.parametrize("found", [example(), hostile(), many(700), delivered()])
def test_it_is_inert_and_fits_a_comment(found: DeliveryReport) -> None:
    text = render_markdown(found)
    text.encode()
    assert_inert(text)
    assert len(text) < ROOM + 5_000


def test_it_tells_each_task() -> None:
    text = render_markdown(delivered(make_report("failed")))
    assert text.startswith("# Calculator: PARTIAL\n\n**Some of the work is merged; ")
    assert "## Needs a human\n\n- **1-1** why  \n  `interlock inbox`" in text
    assert "| `claude` | developer | 4 | 2 | 1 | 1 |" in text
    assert "| check | baseline | check |\n|---|---|---|\n" in text
    assert "| Tests (native) | passed | failed exit 1, 3 tests |" in text
    assert "```text\nboom\n```" in text
    assert "Rules broken:\n\n- moved main" in text
    assert "<details><summary>2 decisions</summary>" in text


def test_what_has_no_room_is_counted() -> None:
    assert " more tasks in `report.html`.*" in render_markdown(many(700))
