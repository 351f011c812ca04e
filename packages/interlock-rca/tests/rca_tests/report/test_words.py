"""Kinds, codes and states: every case has exactly one of each.

Links: plain web addresses pass, everything else is text.
"""

import pytest

from interlock_rca.records import CaseFinding, Launch, Repo, Suspect
from interlock_rca.report.words import (
    DEFECT_MEANINGS,
    build_commit_link,
    build_launch_link,
    build_suspect_link,
    explain_defect,
    find_case_trust,
    find_kind,
    find_state,
    normalize_step,
    rank_severity,
)


def case(**fields: str) -> CaseFinding:
    return CaseFinding(case_id="a", case_no=1, test_name="t", **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("category", "code", "kind"),
    [
        ("product", "", "product"),
        ("Product ", "ab001", "product"),
        ("environment", "", "infra"),
        ("flaky", "", "flake"),
        ("", "pb001", "product"),
        ("", "AU001", "automation"),
        ("", "en001", "infra"),
        ("", "fw001", "firmware"),
        ("", "nd001", "flake"),
        ("", "ti001", "unknown"),
        ("made up", "", "unknown"),
        ("", "", "unknown"),
    ],
)
def test_kind_is_the_category_or_what_the_code_says(category: str, code: str, kind: str) -> None:
    assert find_kind(case(category=category, defect_type=code)) == kind


@pytest.mark.parametrize(
    ("fields", "state"),
    [
        ({"status": "closed", "decision": "approve"}, "closed"),
        ({"status": "reviewed"}, "reviewed"),
        ({"status": "investigated", "decision": "overturn"}, "reviewed"),
        ({"status": "investigated", "decision": "whatever", "step": "F5_REVIEW"}, "waiting"),
        ({"status": "triaged", "step": "F5_REVIEW"}, "waiting"),
        ({"status": "triaged", "step": "review"}, "waiting"),
        ({"status": "triaged", "step": "F5_REVIEW", "stuck": "why"}, "stopped"),
        ({"status": "triaged", "step": "F3_INVESTIGATE"}, "working"),
        ({"status": "open"}, "working"),
    ],
)
def test_state_says_who_is_waited_for(fields: dict[str, str], state: str) -> None:
    assert find_state(case(**fields)) == state


@pytest.mark.parametrize(
    ("fields", "trust"),
    [
        ({}, "unreviewed"),
        ({"decision": "whatever", "reviewed_by": "ines"}, "unreviewed"),
        ({"decision": "approve", "reviewed_by": "ines"}, "human"),
        ({"decision": "overturn", "reviewed_by": "Auto: above 0.9"}, "auto"),
        ({"decision": "approve"}, "auto"),
    ],
)
def test_only_a_named_person_counts_as_human(fields: dict[str, str], trust: str) -> None:
    assert find_case_trust(case(**fields)) == trust


def test_codes_have_a_meaning_and_foreign_ones_say_so() -> None:
    assert all(explain_defect(code) for code in DEFECT_MEANINGS)
    assert explain_defect("PB001") == "Product bug"
    assert explain_defect("pb_1k2") == "Product bug, the project's own code"
    assert explain_defect("zz") == "the project's own code"
    assert explain_defect("") == ""


def test_severities_rank_and_unknown_ones_come_last() -> None:
    ranked = sorted(["", "low", "critical", "odd", "High", "medium"], key=rank_severity)
    assert ranked == ["critical", "High", "medium", "low", "", "odd"]


def test_steps_have_one_name() -> None:
    assert [normalize_step(step) for step in ("F5_REVIEW", "f5", "review", "")] == [
        "review"
    ] * 3 + [""]


SHA = "4be1c07d92aa41c5"


@pytest.mark.parametrize(
    ("home", "link"),
    [
        ("https://git.example.com/a/b", f"https://git.example.com/a/b/commit/{SHA}"),
        ("https://git.example.com/a/b.git/", f"https://git.example.com/a/b/commit/{SHA}"),
        ("https://gitlab.example.com/a/b", f"https://gitlab.example.com/a/b/-/commit/{SHA}"),
        ("git@git.example.com:a/b.git", f"https://git.example.com/a/b/commit/{SHA}"),
        ("ssh://git@git.example.com:22/a/b.git", f"https://git.example.com/a/b/commit/{SHA}"),
        ("/srv/repos/b", ""),
        ("javascript:alert(1)//", ""),
        ("https://git.example.com/a?x", ""),
        ("", ""),
    ],
)
def test_where_a_commit_is_read(home: str, link: str) -> None:
    assert build_commit_link(home, SHA) == link


def test_only_a_hash_is_a_commit() -> None:
    assert build_commit_link("https://git.example.com/a", "main") == ""
    assert build_commit_link("https://git.example.com/a", "../../x") == ""


def test_a_suspect_is_found_by_its_own_link_or_its_repository() -> None:
    repos = [Repo(name="shop", url="https://git.example.com/shop"), Repo(name="other")]
    mine = Suspect(repo="shop", commit=SHA)
    assert build_suspect_link(mine, repos) == f"https://git.example.com/shop/commit/{SHA}"
    assert build_suspect_link(Suspect(repo="none", commit=SHA), repos) == ""
    own = Suspect(repo="shop", commit=SHA, url="https://x.example/c")
    assert build_suspect_link(own, repos) == "https://x.example/c"
    trap = Suspect(repo="other", commit=SHA, url="javascript:alert(1)")
    assert build_suspect_link(trap, repos) == ""


def test_a_launch_links_its_commit() -> None:
    launch = Launch(launch_id="1", commit=SHA, remote="https://git.example.com/shop")
    assert build_launch_link(launch) == f"https://git.example.com/shop/commit/{SHA}"
