"""Causes that rca found, in the comment that history publishes."""

import re
from pathlib import Path

import msgspec

from history_tests.ci.test_digest import digest, make_run
from history_tests.uploads import Upload
from interlock_history.ci.render import (
    COMMENT_LIMIT,
    SUMMARY_LIMIT,
    Links,
    render_comment,
    render_summary,
)
from interlock_rca.report.outline import build_outline
from interlock_rca.test_names import make_test_id
from rca_tests.worlds.findings import example


def test_causes_are_shown_with_their_suspects_within_the_limits(tmp_path: Path) -> None:
    outline = build_outline(example())
    cases = outline.findings.cases
    names = {make_test_id("", case.class_name, case.test_name): "F" for case in cases}
    upload = Upload(make_run(9), names | {f"ok{number}": "P" for number in range(99)})
    found = digest(tmp_path, upload, outline=outline)
    assert len(found.causes) == len(outline.causes)
    text = render_comment(found, title="Tests", links=Links())
    first = outline.causes[0]
    assert f"{len(found.causes)} new causes ({len(names)} tests)" in text
    assert f"**Suspect** `{first.suspects[0].commit[:10]}` " in text
    many = msgspec.structs.replace(found, causes=found.causes * 200)
    comment = render_comment(many, title="Tests", links=Links())
    assert COMMENT_LIMIT // 2 < len(comment) <= COMMENT_LIMIT
    visible = comment.count("\n#### ")
    left = re.search(r"\*([0-9,]+) more sections left out here", comment)
    assert left
    assert visible + int(left[1].replace(",", "")) == len(many.causes)
    assert len(render_summary(many, title="Tests", links=Links()).encode()) <= SUMMARY_LIMIT
