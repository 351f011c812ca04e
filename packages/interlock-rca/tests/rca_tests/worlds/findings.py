"""Example findings for the documents: a red night of a bookshop, a hostile one, and a huge one.

Forty cases in six families, with every kind, state, verdict and way of having been seen.
"""

# ruff: noqa: E501 -- texts of logs and messages

from collections.abc import Sequence
from typing import Any

import msgspec

from interlock.system.test_output import TestCounts
from interlock_rca.records import (
    CaseFinding,
    Evidence,
    FindingFamily,
    Findings,
    FindingStep,
    Launch,
    Repo,
    Suspect,
)
from tests.world.hostile import LINKS

SHOP = Repo(
    name="lantern-shop",
    path="/repos/lantern-shop",
    purpose="The product: catalogue, basket and checkout",
    branch="main",
    url="https://git.example.com/lantern/shop",
)
TESTS = Repo(name="lantern-tests", purpose="The end-to-end tests and their fixtures")
CULPRIT = Suspect(
    repo="lantern-shop",
    commit="4be1c07d92aa41c5b7e0f3d8c6a95b21e7d40f18",
    subject="Round discounts per line instead of per basket",
    author="Mara Lindqvist",
    at="2031-03-03T16:20:00Z",
    files=("shop/pricing/discount.py", "shop/pricing/basket.py"),
    added=1204,
    removed=3,
    score=0.87,
    why="the first commit after the last green run that touches discount.py, which 14 of 14 stacks name",
)
_TRAIL: tuple[tuple[str, str, str, str, dict[str, Any]], ...] = (
    ("F0_RECALL", "H2", "F1_TRIAGE", "no known symptom is like it", {"match": False}),
    (
        "F1_TRIAGE",
        "H6",
        "F2_RESOLVE",
        "worth investigating",
        {"skip_investigation": False, "candidate_repos": ["lantern-shop", "lantern-tests"]},
    ),
    ("F2_RESOLVE", "H8", "F3_INVESTIGATE", "one repository selected", {"selected_repos": 1}),
    (
        "F3_INVESTIGATE",
        "H9",
        "F4_CORRELATE",
        "converged",
        {"convergence_score": 0.86, "convergence_sufficient": 0.7},
    ),
    ("F4_CORRELATE", "H15b", "F5_REVIEW", "not a duplicate", {"is_duplicate": False}),
    ("F5_REVIEW", "H12", "F6_REPORT", "approved", {"decision": "approve"}),
    ("F6_REPORT", "FALLBACK", "DONE", "reported", {}),
)


def trail(length: int, minute: int = 0) -> tuple[FindingStep, ...]:
    return tuple(
        FindingStep(
            step=step,
            attempt=1,
            at=f"2031-03-04T07:{minute:02d}:{number * 4:02d}Z",
            rule=rule,
            to=to,
            why=why,
            read=read,
            by="ines" if step == "F5_REVIEW" else "basic",
        )
        for number, (step, rule, to, why, read) in enumerate(_TRAIL[:length])
    )


def _cases(start: int, names: Sequence[str], at: str, **fields: Any) -> list[CaseFinding]:
    hour, minute = int(at[:2]), int(at[3:])
    return [
        msgspec.structs.replace(
            CaseFinding(case_id=f"case-{start + n}", case_no=start + n, test_name=name),
            launch_id="881",
            version="5.2.0-rc1",
            at=f"2031-03-04T{hour:02d}:{minute + n:02d}:{n * 7 % 60:02d}Z",
            url=f"https://reports.example.com/ui/lantern/launches/881/{9000 + start + n}",
            **fields,
        )
        for n, name in enumerate(names)
    ]


def _discounts() -> list[CaseFinding]:
    names = [
        "test_discount_is_rounded_once[EUR]",
        "test_discount_is_rounded_once[JPY]",
        "test_member_price_in_basket",
        "test_voucher_and_member_price",
        "test_basket_total_with_tax",
        "test_basket_total_after_removal",
        "test_invoice_lines_add_up",
        "test_refund_of_one_line",
        "test_refund_of_all_lines",
        "test_gift_card_covers_total",
        "test_order_mail_shows_total",
        "test_export_to_ledger",
        "test_bulk_order_discount",
        "test_price_preview_matches_checkout",
    ]
    cases = _cases(
        1,
        names,
        "02:11",
        class_name="checkout.pricing.TestDiscounts",
        job="e2e-checkout",
        error="AssertionError: expected total 41.97, got 41.98\n  at shop/pricing/discount.py:88 in apply",
        excerpt=(
            "02:11:04.113 INFO  pricing  basket 7a11 has 3 lines\n"
            "02:11:04.127 DEBUG pricing  line discount 3.335 -> 3.34 (half up)\n"
            "02:11:04.127 DEBUG pricing  line discount 3.335 -> 3.34 (half up)\n"
            "02:11:04.131 ERROR checkout total 41.98 differs from quote 41.97\n"
        ),
        category="product",
        severity="critical",
        defect_type="pb001",
        component="pricing",
        message=(
            "Discounts are rounded for each line since 4be1c07d92, before they were rounded once for"
            " the basket. Baskets with three or more discounted lines end up one cent too high."
        ),
        score=0.86,
        evidence=(
            Evidence(
                ref="lantern-shop:shop/pricing/discount.py:88",
                verdict="found",
                why="the line is on main and rounds inside the loop",
                url="https://git.example.com/lantern/shop/blob/main/shop/pricing/discount.py#L88",
            ),
            Evidence(ref="lantern-shop:4be1c07d92", verdict="found", why="the commit is on main"),
            Evidence(
                ref="lantern-shop:shop/pricing/quote.py:cents",
                verdict="missing",
                why="no such name in quote.py at 4be1c07d92",
            ),
        ),
        suspects=(
            CULPRIT,
            Suspect(
                repo="lantern-shop",
                commit="c0ffee1234567890c0ffee1234567890c0ffee12",
                subject="Move tax rates into their own table",
                author="Tomas Okafor",
                at="2031-03-03T11:02:00Z",
                files=("shop/pricing/tax.py",),
                score=0.31,
                why="touches the same package, but no stack names its files",
            ),
        ),
        rca_id=31,
        symptom_id=12,
        seen=19,
        first_seen="2030-09-14T03:10:00Z",
        last_seen="2030-11-02T03:12:00Z",
        resolved_at="2030-11-05T10:00:00Z",
        recalled=True,
        regression=True,
    )
    for n, case in enumerate(cases):
        if n < 9:
            cases[n] = msgspec.structs.replace(
                case, status="investigated", step="F5_REVIEW", trail=trail(5, n)
            )
        else:
            cases[n] = msgspec.structs.replace(
                case,
                status="closed",
                step="DONE",
                decision="approve",
                reviewed_by="ines",
                trail=trail(7, n),
                draft={
                    "summary": "Basket totals are one cent too high with three discounted lines",
                    "description": "Discounts are rounded per line since 4be1c07d92.",
                    "defect_type": "pb001",
                    "priority": "Highest",
                    "components": ["pricing"],
                    "evidence_refs": ["lantern-shop:shop/pricing/discount.py:88"],
                    "affected_versions": ["5.2.0-rc1"],
                },
            )
    return cases


def _cover_images() -> list[CaseFinding]:
    names = [
        f"test_cover_is_shown[{size}]" for size in ("small", "medium", "large", "zoom", "print")
    ]
    return _cases(
        15,
        names,
        "02:31",
        class_name="catalogue.covers.TestCovers",
        job="e2e-catalogue",
        error="NullPointerException: cover is null\n  at com.example.lantern.Covers.load(Covers.java:52)",
        excerpt="02:31:12 WARN  covers   no image for isbn 978-0-00-000000-2\n02:31:12 ERROR covers   NullPointerException",
        status="investigated",
        step="F5_REVIEW",
        category="product",
        severity="high",
        defect_type="pb001",
        component="catalogue",
        message="A book without a cover makes the page fail: the placeholder is looked up in the new image store, where it was never copied.",
        score=0.72,
        evidence=(Evidence(ref="lantern-shop:covers/Covers.java:52", verdict="unchecked"),),
        rca_id=32,
        symptom_id=40,
        seen=5,
        trail=trail(5),
    )


def _login_page() -> list[CaseFinding]:
    cases = _cases(
        20,
        [
            f"test_login_{how}"
            for how in (
                "with_mail",
                "with_phone",
                "with_key",
                "after_reset",
                "twice",
                "from_basket",
                "in_two_tabs",
            )
        ],
        "02:40",
        class_name="account.TestLogin",
        job="e2e-account",
        error="TimeoutError: waiting for selector '#login-button' failed: 30000 ms exceeded",
        excerpt="02:40:30 page     navigated to /login\n02:41:00 page     no element '#login-button'; found '#sign-in'",
        category="automation",
        severity="medium",
        defect_type="ab001",
        component="account tests",
        message="The tests look for '#login-button'; the page has called it '#sign-in' since 5.2.",
        score=0.91,
        evidence=(
            Evidence(
                ref="lantern-tests:pages/login.py:17",
                verdict="found",
                why="selector '#login-button'",
            ),
        ),
        suspects=(
            Suspect(
                repo="lantern-shop",
                commit="9d41e77",
                subject="Rename the sign-in button",
                author="Yuki Sato",
                at="2031-03-02T09:00:00Z",
                score=0.64,
                why="renames the id that the tests wait for",
            ),
        ),
        rca_id=33,
        symptom_id=41,
        seen=7,
        status="reviewed",
        step="F6_REPORT",
        decision="approve",
        reviewed_by="auto",
        trail=trail(6),
    )
    cases[0] = msgspec.structs.replace(
        cases[0],
        decision="overturn",
        reviewed_by="ines",
        notes=("Was first called a product bug.",),
    )
    return cases


def _database() -> list[CaseFinding]:
    return _cases(
        27,
        [
            f"test_search_{what}"
            for what in (
                "by_title",
                "by_author",
                "by_isbn",
                "with_typo",
                "empty",
                "paged",
                "sorted",
                "in_stock",
            )
        ],
        "03:05",
        class_name="search.TestSearch",
        job="e2e-search",
        error="ConnectionError: could not connect to search-db-2:5432: connection refused",
        excerpt="03:05:00 ERROR pool     search-db-2 refused 5 connections\n03:05:00 ERROR setup    giving up after 5 tries",
        status="reviewed",
        step="F6_REPORT",
        category="infra",
        severity="high",
        defect_type="en001",
        component="test environment",
        message="The search database of the test environment was down from 03:04 on. Every test that needs it failed in its set-up.",
        score=0.8,
        rca_id=20,
        symptom_id=8,
        seen=23,
        first_seen="2030-12-19T01:00:00Z",
        recalled=True,
        cascade=True,
        decision="approve",
        reviewed_by="auto: recall at 0.97",
        trail=trail(6),
    )


def _flakes() -> list[CaseFinding]:
    return _cases(
        35,
        [
            "test_two_readers_reserve_last_copy",
            "test_stock_after_parallel_returns",
            "test_queue_keeps_order",
        ],
        "03:20",
        class_name="stock.TestConcurrency",
        job="e2e-stock",
        error="AssertionError: expected 0 copies, got 1",
        status="triaged",
        step="F5_REVIEW",
        category="flake",
        severity="low",
        defect_type="nd001",
        message="Passed on retry in the same launch; failed the same way in 4 of the last 30 launches.",
        score=0.55,
        symptom_id=5,
        seen=7,
        first_seen="2031-01-11T04:00:00Z",
        recalled=True,
        clock_skew=True,
        trail=trail(2),
    )


def _unclear() -> list[CaseFinding]:
    open_, stopped, untimed = _cases(
        38,
        ["test_nightly_import", "test_import_of_empty_feed", "test_import_resumes"],
        "03:41",
        class_name="feeds.TestImport",
        job="e2e-feeds",
        error="Process exited with code 137",
        category="unknown",
        defect_type="ti001",
        symptom_id=44,
        seen=3,
    )
    return [
        msgspec.structs.replace(open_, status="triaged", step="F3_INVESTIGATE", trail=trail(3)),
        msgspec.structs.replace(
            stopped,
            status="triaged",
            step="F3_INVESTIGATE",
            stuck="no rule takes the signal 'crash' at F3_INVESTIGATE",
            trail=trail(3),
        ),
        msgspec.structs.replace(untimed, status="open", step="F0_RECALL", at="", version=""),
    ]


def _family(family_id: str, title: str, cases: Sequence[CaseFinding]) -> FindingFamily:
    return FindingFamily(
        family_id=family_id, title=title, members=tuple(case.case_id for case in cases)
    )


def example() -> Findings:
    """A red night: six causes, forty failures, every state."""
    families = {
        "rca-31": (
            "Discounts are rounded for each line, so totals are a cent too high",
            _discounts(),
        ),
        "rca-32": ("A book without a cover makes its page fail", _cover_images()),
        "rca-33": ("Tests wait for the old sign-in button", _login_page()),
        "rca-20": ("The search database of the test environment was down", _database()),
        "symptom-5": ("Stock counts differ when readers race", _flakes()),
        "symptom-44": ("The import was killed, nobody knows why", _unclear()),
    }
    return Findings(
        suite_id=7,
        name="Lantern nightly",
        made_at="2031-03-04T07:30:12Z",
        agent="basic",
        launches=(
            Launch(
                launch_id="881",
                name="nightly-e2e",
                number=412,
                status="FAILED",
                started_at="2031-03-04T02:00:00Z",
                ended_at="2031-03-04T03:58:31Z",
                version="5.2.0-rc1",
                branch="main",
                commit="77aa0e4f1b2c3d4e5f60718293a4b5c6d7e8f901",
                remote="git@git.example.com:lantern/shop.git",
                url="https://reports.example.com/ui/lantern/launches/881",
                ci_url="https://ci.example.com/job/nightly/412",
                tally=TestCounts(tests=1860, failed=40, skipped=12),
            ),
        ),
        repos=(SHOP, TESTS),
        thresholds={"recall_hit": 0.8, "convergence_sufficient": 0.7, "correlate_dup": 0.8},
        families=tuple(_family(key, *output) for key, output in families.items()),
        cases=tuple(case for _, cases in families.values() for case in cases),
        dispatches=171,
        tokens=0,
    )


HOSTILE = (
    "</title><script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "{{ 7 * 7 }}{% raw %}",
    "</style><style>body{display:none}",
    "</script><!-- ]]>",
    "\x1b[31mred\x1b[0m \x1b]8;;https://evil.example\x07link \x00\x07\x08",
    "\u202egnitset\u202c \u2066x\u2069 \ud800",
    "a|b `c` ``d`` *e* _f_ [g](javascript:alert(1)) ![h](https://evil.example/p.png)",
    "@everyone #1 <!-- http://evil.example www.evil.example -->",
    "../../etc/passwd\\con:nul",
    "# heading\n- item\n```\nfence\n````\n</details>",
    "漢字かな交じり文のテスト名 👩‍💻 e\u0301",
    "",
    "x" * 30_000,
)


def hostile() -> Findings:
    """Every text of every record is an attack, and the links are traps."""
    cases = [
        _hostile_case(number, text, LINKS[number % len(LINKS)])
        for number, text in enumerate(HOSTILE, 1)
    ]
    return Findings(
        suite_id=1,
        name=HOSTILE[0],
        made_at=HOSTILE[1],
        agent=HOSTILE[2],
        launches=tuple(
            Launch(
                launch_id=text,
                name=text,
                status=text,
                version=text,
                branch=text,
                commit=text,
                remote=link,
                url=link,
                ci_url=link,
                started_at=text,
            )
            for text, link in zip(HOSTILE, LINKS, strict=False)
        ),
        repos=(Repo(name=HOSTILE[0], purpose=HOSTILE[1], url=LINKS[0]),),
        thresholds={HOSTILE[0]: 0.5},
        families=tuple(
            FindingFamily(family_id=case.test_name, title=case.test_name, members=(case.case_id,))
            for case in cases
        ),
        cases=tuple(cases),
    )


def _hostile_case(number: int, text: str, link: str) -> CaseFinding:
    return CaseFinding(
        case_id=text,
        case_no=number,
        test_name=text,
        class_name=text,
        job=text,
        version=text,
        at=text if number % 2 else "2031-03-04T02:00:00Z",
        url=link,
        error=text,
        excerpt=text,
        status=text,
        step=text,
        stuck=text,
        category=text,
        severity=text,
        defect_type=text,
        component=text,
        message=text,
        score=0.5,
        evidence=(Evidence(ref=text, verdict=text, why=text, url=link),),
        suspects=(
            Suspect(
                repo=text, commit=text, subject=text, author=text, why=text, url=link, files=(text,)
            ),
        ),
        first_seen=text,
        last_seen=text,
        regression=True,
        decision=text,
        reviewed_by=text,
        notes=(text,),
        draft={"summary": text, text: [text, {"deep": text}], "components": text, "priority": 7},
        trail=(
            FindingStep(
                step=text, attempt=1, at=text, rule=text, to=text, why=text, read={text: text}
            ),
        ),
    )


def many(number: int, families: int = 6, size: int = 3000) -> Findings:
    """A huge suite: so many cases, spread over so many families, with logs of that size."""
    model = example()
    cases = [
        msgspec.structs.replace(
            model.cases[n % len(model.cases)],
            case_id=f"case-{n}",
            case_no=n,
            test_name=f"test_number_{n}_of_a_long_list_of_tests",
            at=f"2031-03-{1 + n * 28 // number:02d}T{n % 24:02d}:{n % 60:02d}:00Z",
            excerpt=f"line {n} & <b>more</b>\n" * (size // 20),
        )
        for n in range(number)
    ]
    return msgspec.structs.replace(
        model,
        cases=tuple(cases),
        families=tuple(
            _family(f"family-{n}", f"Cause number {n}", cases[n::families]) for n in range(families)
        ),
    )
