"""What agents write is read as what they mean."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock_rca.sources.git.evidence_refs import EvidencePointer, parse_reference

HASH = "0123456789abcdef0123456789abcdef01234567"


def first(ref: str) -> EvidencePointer | None:
    """The first reading that is sure, with the repositories shop and till known."""
    for alternatives in parse_reference(ref, ("shop", "till")):
        for pointer in alternatives:
            if pointer.is_sure:
                return pointer
    return None


def file(
    path: str, line: int = 0, last: int = 0, words: str = "", repo: str = ""
) -> EvidencePointer:
    return EvidencePointer(kind="file", repo=repo, path=path, first=line, last=last, words=words)


def commit(rev: str, repo: str = "", place: str = "") -> EvidencePointer:
    return EvidencePointer(kind="commit", repo=repo, rev=rev, place=place)


@pytest.mark.parametrize(
    ("ref", "expected"),
    [
        ("shop:src/cart.py:add", file("src/cart.py", words="add", repo="shop")),
        ("shop:src/cart.py:12", file("src/cart.py", 12, repo="shop")),
        ("shop:src/cart.py:12-20", file("src/cart.py", 12, 20, repo="shop")),
        ("shop:src/cart.py:L12-L20", file("src/cart.py", 12, 20, repo="shop")),
        ("shop:src/cart.py:12:5", file("src/cart.py", 12, repo="shop")),
        ("shop:src/cart.py:12:add", file("src/cart.py", 12, words="add", repo="shop")),
        ("shop:src/cart.cpp:Cart::add", file("src/cart.cpp", words="Cart::add", repo="shop")),
        ("shop:src/cart.py:add()", file("src/cart.py", words="add", repo="shop")),
        ("shop:src", file("src", repo="shop")),
        ("shop:Makefile:3", file("Makefile", 3, repo="shop")),
        ("src/cart.py:12", file("src/cart.py", 12)),
        ("src/cart.py#L12-L20", file("src/cart.py", 12, 20)),
        ("cart.py", file("cart.py")),
        (".github/workflows/ci.yml:3", file(".github/workflows/ci.yml", 3)),
        ("`src/cart.py:12`", file("src/cart.py", 12)),
        ("src/cart.py:12 - because it subtracts", file("src/cart.py", 12)),
        ("src/cart.py:12 \N{EM DASH} it subtracts", file("src/cart.py", 12)),
        ("shop:src/cart.py:add: it subtracts", file("src/cart.py", words="add", repo="shop")),
        ("src/cart.py:12 (the sign)", file("src/cart.py", 12)),
        ("src/cart.py:12 is wrong", file("src/cart.py", 12)),
        ("In src/cart.py:12, the client and/or server fails.", file("src/cart.py", 12)),
        ("src/cart.py line 12", file("src/cart.py", 12)),
        ("src/cart.py, lines 12-20", file("src/cart.py", 12, 20)),
        ("src/cart.py (line 12)", file("src/cart.py", 12)),
        ('File "/ci/src/cart.py", line 12, in add', file("/ci/src/cart.py", 12)),
        ("Dockerfile", file("Dockerfile")),
        (HASH, commit(HASH)),
        (HASH[:7], commit(HASH[:7])),
        (HASH[:9].upper(), commit(HASH[:9])),
        (f"shop@{HASH[:9]}", commit(HASH[:9], "shop")),
        (f"shop:{HASH[:9]}", commit(HASH[:9], "shop")),
        (f"shop {HASH[:9]}", commit(HASH[:9], "shop")),
        (f"other@{HASH[:9]}", commit(HASH[:9], "other")),
        (f"commit {HASH}", commit(HASH)),
        (f"Commit: {HASH[:8]}", commit(HASH[:8])),
        (f"the commit {HASH[:8]} on 20240101 broke it", commit(HASH[:8])),
        (f"{HASH[8:16]} broke src/cart.py", commit(HASH[8:16])),
        (
            f"shop@{HASH[:8]}:src/cart.py:12",
            EvidencePointer(kind="file", repo="shop", rev=HASH[:8], path="src/cart.py", first=12),
        ),
        (
            f"https://github.com/acme/shop/commit/{HASH}",
            commit(HASH, place="github.com/acme/shop"),
        ),
        (
            f"see https://gitlab.com/a/b/shop/-/commit/{HASH}).",
            commit(HASH, place="gitlab.com/a/b/shop"),
        ),
        (
            "[cart](https://github.com/acme/src/blob/main/a%20b/cart.py#L12-L20)",
            EvidencePointer(
                kind="file",
                place="github.com/acme/src",
                rev="main",
                path="a b/cart.py",
                first=12,
                last=20,
            ),
        ),
        (
            f"https://gitea.com/acme/shop/src/commit/{HASH}/cart.py#L3",
            EvidencePointer(
                kind="file", place="gitea.com/acme/shop", rev=HASH, path="cart.py", first=3
            ),
        ),
        (
            "https://bitbucket.org/acme/shop/src/main/cart.py#lines-3:9",
            EvidencePointer(
                kind="file",
                place="bitbucket.org/acme/shop",
                rev="main",
                path="cart.py",
                first=3,
                last=9,
            ),
        ),
        ("log:12", EvidencePointer(kind="log", first=12)),
        ("log line 12", EvidencePointer(kind="log", first=12)),
        ("Log lines 12-14", EvidencePointer(kind="log", first=12, last=14)),
        ('log line 12: "refused"', EvidencePointer(kind="log", first=12, words='"refused"')),
        ("log:L12 - refused", EvidencePointer(kind="log", first=12, words="refused")),
        ("log: refused", EvidencePointer(kind="log", words="refused")),
        ("log.py:12", file("log.py", 12)),
        ("log/a.py:12", file("log/a.py", 12)),
        ("the developer said so", None),
        ("and/or in a sentence", None),
        ("https://github.com/acme/shop", None),
        ("https://github.com/acme/shop/issues/12", None),
        ("", None),
        ("12", None),
        ("-rf", None),
        ("20240101 was the day", None),
        ("it was defaced", None),
    ],
)
def test_what_a_reference_means(ref: str, expected: EvidencePointer | None) -> None:
    assert first(ref) == expected


def test_a_branch_with_slashes_is_read_in_every_way() -> None:
    (alternatives,) = parse_reference("https://github.com/a/b/blob/team/x/src/cart.py", ())
    assert [(one.rev, one.path) for one in alternatives] == [
        ("team", "x/src/cart.py"),
        ("team/x", "src/cart.py"),
        ("team/x/src", "cart.py"),
    ]


def test_a_repository_named_log_is_not_the_log() -> None:
    assert [[file("a.py", 3, repo="log")]] == list(parse_reference("log:a.py:3", ("log",)))


@given(st.text(max_size=300))
def test_any_text_has_some_reading_or_none(text: str) -> None:
    for alternatives in parse_reference(text, ("shop",)):
        for pointer in alternatives:
            assert pointer.kind in ("commit", "file", "log")


@pytest.mark.parametrize("piece", ["a:", "https://", "src/", "line 1 ", "log ", "@" * 3, "f" * 7])
def test_long_text_is_read_in_a_moment(piece: str) -> None:
    assert len(list(parse_reference(piece * (2_000 // len(piece)), ("shop",)))) < 100
