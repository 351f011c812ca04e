"""The page: whole, well-formed, inert, bounded; its numbers add up and it needs nothing else."""

import base64
import hashlib
import re
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given, settings

from interlock_rca.records import Evidence, FindingFamily, Findings, FindingStep
from interlock_rca.report.outline import build_outline
from interlock_rca.report.page import (
    MAX_BYTES,
    MAX_CARDS,
    MAX_MEMBERS,
    MAX_ROWS,
    choose_verdict_word,
    list_values,
    load_environment,
    read_template,
    render_page,
)
from interlock_rca.report.words import KINDS, STATES
from rca_tests.report.strategies import findings_of_any_kind
from rca_tests.worlds.findings import HOSTILE, example, hostile, many
from tests.world.page_reader import Page, assert_page_inert, assert_page_sound


@pytest.mark.parametrize(
    "findings", [example(), hostile(), many(300, 3)], ids=["night", "evil", "big"]
)
def test_page_is_well_formed_and_inert(findings: Findings) -> None:
    read = Page(render_page(build_outline(findings)))
    assert_page_inert(read)
    assert_page_sound(read)


@settings(max_examples=40)
@given(findings_of_any_kind())
def test_any_findings_make_a_sound_page(findings: Findings) -> None:
    html = render_page(build_outline(findings))
    html.encode()
    read = Page(html)
    assert_page_inert(read)
    assert_page_sound(read)
    assert len(read.with_attribute("data-n")) == len(findings.cases)


def test_the_page_forbids_itself_everything_but_its_own_parts() -> None:
    read = Page(render_page(build_outline(example())))
    (policy,) = [meta["content"] for meta in read.all("meta") if meta.get("http-equiv", "") != ""]
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    for part in ("script", "style"):
        digest = base64.b64encode(hashlib.sha256(read.inside[part].encode()).digest()).decode()
        assert f"{part}-src 'sha256-{digest}'" in policy


def test_the_page_asks_for_nothing_outside() -> None:
    html = render_page(build_outline(example()))
    assert not re.search(r"@import|url\(|@font-face|<link|\bsrc=", html)


def test_every_failure_is_listed_once_and_told_in_full() -> None:
    read = Page(render_page(build_outline(example())))
    listed = read.with_attribute("data-n")
    assert [row["data-n"] for row in listed] == [str(n) for n in range(1, 41)]
    assert [case["data-case"] for case in read.with_attribute("data-case")] == [
        row["data-n"] for row in listed
    ]


def test_counts_of_the_filter_add_up_and_are_those_of_the_rows() -> None:
    read = Page(render_page(build_outline(example())))
    rows = read.with_attribute("data-n")
    counts = {
        option["value"]: int(number)
        for option, number in zip(
            read.all("option"),
            re.findall(r"\w \((\d+)\)", _options(render_page(build_outline(example())))),
            strict=True,
        )
        if option["value"]
    }
    for word, number in counts.items():
        key = "data-s" if word in STATES else "data-k"
        assert sum(row[key] == word for row in rows) == number
    assert sum(number for word, number in counts.items() if word in STATES) == 40


def _options(html: str) -> str:
    return " ".join(re.findall(r"<option[^>]*>[^<]*</option>", html))


def test_the_reader_sees_verdict_suspect_evidence_and_trail() -> None:
    visible = " ".join(Page(render_page(build_outline(example()))).text.split())
    for result in (
        "40 failures, 6 causes: 1 product regression (14 failures)",
        "4be1c07d92 Round discounts per line instead of per basket",
        "Mara Lindqvist in lantern-shop",
        "+1,204 -3 shop/pricing/discount.py",
        "pb001 Product bug",
        "critical severity",
        "missing lantern-shop:shop/pricing/quote.py:cents",
        "Came back: seen before, first on 2030-09-14",
        "Approved by ines [human]",
        "Overturned by ines [human]",
        "Reviewed [auto]",
        "Stopped at Investigate: no rule takes the signal 'crash'",
        "Investigate What broke, and why? converged basic Correlate convergence_score 0.86",
        "Cascade from a shared set-up",
        "Clock skew suspected",
        "nightly-e2e #412 1,860 tests: 40 failed, 12 skipped",
        "version 5.2.0-rc1 main at 77aa0e4f1b",
    ):
        assert result in visible, result


def test_the_first_screen_says_what_is_new_who_should_look_and_what_waits() -> None:
    html = render_page(build_outline(example()))
    first = " ".join(
        Page(html[: html.index('<section id="causes"')] + "</main></body></html>").text.split()
    )
    for result in (
        "40 failures 6 causes 3 new 2 seen before 1 regression 3 to review",
        "Product · Regression · 4be1c07d92 by Mara Lindqvist: Round discounts per line",
        "Automation · New · 9d41e77 by Yuki Sato: Rename the sign-in button",
        "Infrastructure · Seen before",
        "9 wait for review, 5 closed 14 failures",
    ):
        assert result in first, result


def test_without_times_the_causes_are_still_there_at_a_glance() -> None:
    cases = tuple(msgspec.structs.replace(case, at="") for case in example().cases)
    read = Page(render_page(build_outline(msgspec.structs.replace(example(), cases=cases))))
    assert len(read.with_class("lane")) == 6
    assert "The first failure" not in read.text


def test_a_case_is_told_with_its_id_its_class_and_its_stack() -> None:
    lead = msgspec.structs.replace(
        example().cases[0], class_name="shop.Basket", stack="Traceback:\n  at basket.py:7"
    )
    findings = msgspec.structs.replace(example(), cases=(lead, *example().cases[1:]))
    visible = " ".join(Page(render_page(build_outline(findings))).text.split())
    assert f"{lead.test_name} shop.Basket" in visible
    assert "Stack Traceback: at basket.py:7" in visible
    assert f"interlock explain {lead.case_id} --run 7 shows" in visible


def test_what_a_reviewer_types_is_there_while_somebody_is_asked() -> None:
    asked = tuple(
        msgspec.structs.replace(case, question_id=100 + case.case_no) for case in example().cases
    )
    findings = msgspec.structs.replace(example(), cases=asked)
    for cause, card in zip(
        build_outline(findings).causes, _cards(render_page(build_outline(findings))), strict=True
    ):
        waiting = [case.question_id for case in cause.cases if case.step == "F5_REVIEW"]
        result = f"interlock answer {cause.question_id} approve" in card
        assert result == ("waiting" in cause.states)
        assert cause.question_id == 0 or cause.question_id in waiting


def _cards(html: str) -> list[str]:
    return html.split('<article class="card')[1:]


def test_a_draft_is_copied_with_one_click() -> None:
    read = Page(render_page(build_outline(example())))
    buttons = [tag for tag in read.all("button") if tag.get("data-copy", "").startswith("d-f")]
    assert len(buttons) == 6
    html = render_page(build_outline(example()))
    assert all(card.index("data-copy") < card.index("<details") for card in _cards(html))


def test_a_title_is_not_said_twice() -> None:
    lead = example().cases[0]
    title = build_outline(example()).causes[0].title
    cases = [
        msgspec.structs.replace(case, message=f"{title}. Since 4be1c07d92.")
        if case.case_id == lead.case_id
        else case
        for case in example().cases
    ]
    html = render_page(build_outline(msgspec.structs.replace(example(), cases=tuple(cases))))
    assert '<p class="cause">Since 4be1c07d92.</p>' in html


def test_headings_leave_no_level_out() -> None:
    levels = [
        int(tag[1])
        for tag, _ in Page(render_page(build_outline(example()))).tags
        if re.fullmatch("h[1-6]", tag)
    ]
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


def test_nothing_that_scrolls_is_out_of_reach_of_the_keyboard() -> None:
    read = Page(render_page(build_outline(example())))
    assert all(part["tabindex"] == "0" for part in [*read.all("pre"), *read.with_class("scroll")])


def test_who_named_no_repository_is_told_what_that_costs() -> None:
    bare = tuple(msgspec.structs.replace(case, suspects=()) for case in example().cases)
    alone = msgspec.structs.replace(example(), repos=(), cases=bare)
    assert (
        "No commit is suspected, because no repository was named"
        in Page(render_page(build_outline(alone))).text
    )
    assert "no repository was named" not in Page(render_page(build_outline(example()))).text


def test_numbers_on_badges_can_be_read() -> None:
    """WCAG AA: 4.5 to 1, in both themes, for every shade of every kind."""
    style = Page(render_page(build_outline(example()))).inside["style"]
    themes = style[: style.index(".k-product")]
    light, dark = themes[: themes.index("@media")], themes[themes.index("@media") :]
    for theme in (light, dark):
        colours = dict(re.findall(r"--([a-z]+[0-9]): (#[0-9a-f]{3,6})", theme))
        for kind in KINDS:
            for shade in range(4):
                contrast = _contrast(colours[f"{kind}{shade}"], colours[f"on{shade}"])
                assert contrast >= 4.5, (kind, shade, contrast)
            for ground in re.findall(r"--(?:card|sunk): (#[0-9a-f]{3,6})", theme):
                assert _contrast(colours[f"{kind}0"], ground) >= 4.5, (kind, ground)


def _contrast(one: str, other: str) -> float:
    high, low = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def _luminance(colour: str) -> float:
    digits = colour[1:] if len(colour) == 7 else "".join(2 * sign for sign in colour[1:])
    parts = [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_commits_and_launches_are_linked() -> None:
    links = {a["href"] for a in Page(render_page(build_outline(example()))).all("a")}
    assert {
        "https://git.example.com/lantern/shop/commit/4be1c07d92aa41c5b7e0f3d8c6a95b21e7d40f18",
        "https://git.example.com/lantern/shop/commit/77aa0e4f1b2c3d4e5f60718293a4b5c6d7e8f901",
        "https://ci.example.com/job/nightly/412",
        "https://reports.example.com/ui/lantern/launches/881",
    } <= links
    assert not any(
        "secret" in a["href"] for a in Page(render_page(build_outline(hostile()))).all("a")
    )


def test_hostile_texts_are_shown_as_text() -> None:
    visible = Page(render_page(build_outline(hostile()))).text
    for text in HOSTILE[:6]:
        assert text in visible


@pytest.mark.parametrize(("families", "cards"), [(1, 1), (6, 6), (10_000, MAX_CARDS)])
def test_ten_thousand_failures_fit(families: int, cards: int) -> None:
    html = render_page(build_outline(many(10_000, families)))
    assert len(html.encode()) < 30_000_000
    read = Page(html)
    assert len(read.with_attribute("data-n")) == 10_000
    assert len(read.with_attribute("data-family")) == cards
    assert_page_sound(read)
    assert "Everything is in report.json" in " ".join(read.text.split())


def test_a_large_family_says_how_many_are_elsewhere() -> None:
    read = Page(render_page(build_outline(many(10_000, 1))))
    assert f"and {10_000 - MAX_MEMBERS:,} more" in read.text
    assert {"href": "#list-1"} in read.all("a")
    assert f"{10_000 - MAX_MEMBERS:,} of 10,000 failures are not shown in full" in read.text


def test_enormous_texts_do_not_make_an_enormous_page() -> None:
    huge = msgspec.structs.replace(
        example().cases[0], error="&" * 500_000, excerpt="<" * 500_000, message="'" * 500_000
    )
    cases = tuple(
        msgspec.structs.replace(huge, case_id=str(n), test_name="&" * 5000, class_name='"' * 5000)
        for n in range(10_000)
    )
    html = render_page(build_outline(msgspec.structs.replace(example(), cases=cases, families=())))
    assert len(html.encode()) < 30_000_000
    assert "496,000 more characters in report.json" in html


def test_enormous_cards_are_bounded_by_bytes() -> None:
    huge = msgspec.structs.replace(example().cases[0], error="漢" * 5000, excerpt="字" * 9000)
    cases = [msgspec.structs.replace(huge, case_id=str(n)) for n in range(6000)]
    families = [
        FindingFamily(
            family_id=str(n), title=f"cause {n}", members=tuple(map(str, range(n, 6000, 240)))
        )
        for n in range(240)
    ]
    html = render_page(
        build_outline(
            msgspec.structs.replace(example(), cases=tuple(cases), families=tuple(families))
        )
    )
    assert len(html.encode()) < MAX_BYTES + 6000 * 500
    read = Page(html)
    assert len(read.with_attribute("data-n")) == 6000
    assert len(read.with_attribute("data-family")) == 240
    assert len(read.with_attribute("data-case")) > 100
    assert_page_sound(read)


def test_more_failures_than_anybody_reads_are_counted() -> None:
    read = Page(render_page(build_outline(many(MAX_ROWS + 5000, 3, 0))))
    assert len(read.with_attribute("data-n")) == MAX_ROWS
    assert_page_sound(read)
    assert "5,000 of 25,000 failures are not listed" in read.text
    assert f"and {5000:,} more in report.json" in read.text


def test_members_that_were_called_something_else_are_told() -> None:
    cases = [
        msgspec.structs.replace(case, category="infra") if case.case_no == 2 else case
        for case in example().cases
    ]
    visible = Page(
        render_page(build_outline(msgspec.structs.replace(example(), cases=tuple(cases))))
    ).text
    assert "1 as infrastructure" in visible


def test_a_suite_without_failures_says_so() -> None:
    read = Page(
        render_page(build_outline(msgspec.structs.replace(example(), cases=(), families=())))
    )
    assert_page_sound(read)
    assert "Nothing failed" in read.text


def test_the_same_findings_make_the_same_page() -> None:
    assert render_page(build_outline(example())) == render_page(build_outline(example()))


def test_families_stand_in_the_order_of_the_outline() -> None:
    read = Page(render_page(build_outline(example())))
    assert [card["id"] for card in read.with_class("card")] == [
        f"family-{cause.family_id}" for cause in build_outline(example()).causes
    ]


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


def test_our_style_and_script_cannot_end_their_element() -> None:
    assert "</" not in read_template("page.css")
    assert "</script" not in read_template("page.js")


def test_every_text_is_escaped_without_being_asked() -> None:
    assert load_environment().from_string("{{ x }}").render(x="<b>") == "&lt;b&gt;"
