"""Evidence is found only where it is; hostile references reach nothing.

References to a log are held against its lines.
"""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock_rca.records import Repo
from interlock_rca.sources.git.evidence import LogEvidence, check_evidence
from interlock_rca.sources.git.evidence_refs import EvidencePointer
from interlock_rca.sources.git.repository import Repository
from tests.world.git_repo import GitRepo

CART = "class Cart:\n    def add(self, item):\n        return item\n"
LOG = "start\nconnection refused by peer\nend\n"


class Shop:
    """Two repositories: shop, with a commit that is on another branch only, and till."""

    def __init__(self, folder: Path) -> None:
        self.world = world = GitRepo(folder / "shop")
        self.begin = world.commit("Begin", {"src/cart.py": CART, "lib/a/x.py": "1\n"})
        self.tip = world.commit("Go on", {"lib/b/x.py": "2\n", "a file.py": "3\n"})
        world.branch("later")
        self.later = world.commit("Later", {"src/later.py": "x = 1\n"})
        world.checkout("main")
        till = GitRepo(folder / "till")
        till.commit("Begin", {"till.go": "package till\n"})
        url = "https://ada:secret@github.com/acme/shop.git"
        self.repos = {
            "shop": Repository(Repo(name="shop", path=str(world.folder), url=url)),
            "till": Repository(Repo(name="till", path=str(till.folder))),
        }

    def check(self, ref: str, tested: str = "") -> tuple[str, str]:
        (found,) = check_evidence([ref], self.repos, tested, LOG)
        return found.verdict, found.why


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    return Shop(tmp_path_factory.mktemp("git"))


@pytest.mark.parametrize(
    ("ref", "why"),
    [
        ("shop:src/cart.py:add", "src/cart.py in shop"),
        ("shop:src/cart.py:Cart.add()", "src/cart.py in shop"),
        ("shop:src/cart.py:def add(self, item)", "src/cart.py in shop"),
        ("shop:src/cart.py:2", "line 2 of src/cart.py in shop"),
        ("shop:src/cart.py:1-3", "lines 1-3 of src/cart.py in shop"),
        ("SHOP:src/cart.py:2", "line 2 of src/cart.py in shop"),
        ("src/cart.py:2 - because it returns", "line 2 of src/cart.py in shop"),
        ("cart.py", "src/cart.py in shop"),
        ("shop/src/cart.py:1", "line 1 of src/cart.py in shop"),
        ("/ci/work/src/cart.py:1", "line 1 of src/cart.py in shop"),
        ("src\\cart.py:1", "line 1 of src/cart.py in shop"),
        ("till.go", "till.go in till"),
        ("shop:src", "folder src in shop"),
        ("shop:a file.py:1", "line 1 of a file.py in shop"),
        ("log:2", "line 2 of the log"),
        ('log line 2: "refused by"', "line 2 of the log"),
        ('log line 1: "refused by"', "it is line 2 of the log"),
        ("log line 1: refused", "line 1 of the log; what is said of it does not stand there"),
        ("log: refused  by peer", "line 2 of the log"),
    ],
)
def test_found(shop: Shop, ref: str, why: str) -> None:
    assert shop.check(ref) == ("found", why)


@pytest.mark.parametrize(
    ("ref", "why"),
    [
        ("shop:src/cart.py:remove", "remove does not occur in src/cart.py"),
        ("shop:src/cart.py:Cart.remove()", "Cart.remove does not occur in src/cart.py"),
        ("shop:src/cart.py:4", "src/cart.py has only 3 lines"),
        ("shop:src/cart.py:0", "lines are counted upwards, from 1"),
        ("shop:src/cart.py:3-4", "src/cart.py has only 3 lines"),
        ("shop:src/cart.py:3-1", "lines are counted upwards, from 1"),
        ("shop:src:3", "src is a folder, and has no lines"),
        ("till:src/cart.py", "there is no src/cart.py in till"),
        ("ghost/cart.py", "there is no ghost/cart.py in shop"),
        ("gone.py:1 as in src/cart.py", "there is no gone.py in shop"),
        ("x.py:1", "x.py may be any of 2 files: lib/a/x.py, lib/b/x.py"),
        ("src/later.py:1", "there is no src/later.py in shop"),
        ("0123456789abcdef", "there is no commit 0123456789ab in shop"),
        ("log:9", "the log has only 3 lines"),
        ("log:0", "the log has only 3 lines"),
        ('log:2: "ghost words"', "these words are not in the log: ghost words"),
        ("log: ghost words", "these words are not in the log: ghost words"),
        ("--output=/tmp/x.py", "there is no --output=/tmp/x.py in shop"),
        ("../../etc/passwd", "../../etc/passwd leads out of the repository shop"),
        ("shop:src/../../x.py:1", "src/../../x.py leads out of the repository shop"),
        ("/etc/passwd:1", "there is no /etc/passwd in shop"),
        ("shop:.git/config", "there is no .git/config in shop"),
        ("shop:src/cart.py\0:2", "it holds characters no path has"),
        ("x" * 1_000_000, "1,000,000 characters are too many for a reference"),
        ("shop:$(touch x).py", "there is no"),
        ("shop:;touch y.py", "there is no"),
        ("shop:\udcff.py", "it holds characters no path has"),
    ],
)
def test_missing(shop: Shop, ref: str, why: str) -> None:
    verdict, result = shop.check(ref)
    assert verdict == "missing"
    assert result.startswith(why)


@pytest.mark.parametrize(
    ("ref", "why"),
    [
        ("ghost:src/cart.py:1", "no repository ghost is known; known are: shop, till"),
        ("https://github.com/acme/ghost/commit/0123456789", "no repository github.com/acme/ghost"),
        ("https://evil.org/acme/shop/blob/main/src/cart.py", "no repository evil.org/acme/shop"),
        ("everybody knows", "it names no file, no commit and no line of the log"),
        ("", "it names no file"),
        ("\n\n", "it names no file"),
    ],
)
def test_unchecked(shop: Shop, ref: str, why: str) -> None:
    verdict, result = shop.check(ref)
    assert verdict == "unchecked"
    assert result.startswith(why)


def test_commits_must_be_on_what_was_tested(shop: Shop) -> None:
    forms = ("{0}", "shop@{0}", "commit {0}", "https://github.com/acme/shop/commit/{0}")
    for form in forms:
        assert shop.check(form.format(shop.begin))[0] == "found"
        assert shop.check(form.format(shop.later)) == (
            "missing",
            f"{shop.later[:12]} of shop exists, but not on main",
        )
        assert shop.check(form.format(shop.later), "later")[0] == "found"
        assert shop.check(form.format(shop.tip), shop.begin) == (
            "missing",
            f"{shop.tip[:12]} of shop exists, but not on {shop.begin[:12]}",
        )


def test_files_must_be_in_what_was_tested(shop: Shop) -> None:
    assert shop.check("src/later.py:1", "later")[0] == "found"
    assert shop.check("a file.py", shop.begin)[0] == "missing"
    assert shop.check(f"shop@{shop.begin[:9]}:src/cart.py:3")[0] == "found"
    assert shop.check(f"shop@{shop.later[:9]}:src/later.py:1")[0] == "missing"
    url = "https://github.com/acme/shop/blob"
    assert shop.check(f"{url}/main/src/cart.py#L3")[0] == "found"
    assert shop.check(f"{url}/main/src/cart.py#L4") == ("missing", "src/cart.py has only 3 lines")
    assert shop.check(f"{url}/later/src/later.py#L1")[0] == "missing"
    assert shop.check(f"{url}/nowhere/src/cart.py") == (
        "missing",
        "there is no revision nowhere in shop",
    )


def test_links_are_given_without_credentials(shop: Shop) -> None:
    line, commit, other = check_evidence(
        ["shop:src/cart.py:2", f"shop@{shop.begin}", "till.go"], shop.repos
    )
    assert line.url == f"https://github.com/acme/shop/blob/{shop.tip}/src/cart.py#L2"
    assert commit.url == f"https://github.com/acme/shop/commit/{shop.begin}"
    assert other.url == ""


def test_without_repositories_or_log_nothing_is_checked() -> None:
    found = check_evidence(["shop:a.py:1", "0123456789", "log:1"], {})
    assert [(one.verdict, one.why) for one in found] == [
        ("unchecked", "no repository is known to look in"),
        ("unchecked", "no repository is known to look in"),
        ("unchecked", "no log was given to look in"),
    ]


def test_an_empty_log_has_no_lines() -> None:
    (found,) = check_evidence(["log:1"], {}, log="")
    assert found.verdict == "missing"


def test_a_repository_that_cannot_be_read_leaves_references_unchecked(shop: Shop) -> None:
    gone = Repository(Repo(name="gone", path="/nowhere/at/all"))
    (found,) = check_evidence(["gone:a.py:1"], {"gone": gone})
    assert found.verdict == "unchecked"
    assert "does not exist" in found.why
    (elsewhere,) = check_evidence(["ghost.py:1"], {**shop.repos, "gone": gone})
    assert elsewhere.verdict == "unchecked"


def test_a_shallow_clone_does_not_say_that_a_commit_is_missing(shop: Shop, tmp_path: Path) -> None:
    clone = shop.world.clone(tmp_path / "clone", "--depth=1")
    repos = {"shop": Repository(Repo(name="shop", path=str(clone.folder)))}
    (found,) = check_evidence([f"shop@{shop.begin}"], repos)
    assert (found.verdict, found.why) == (
        "unchecked",
        f"commit {shop.begin[:12]} is not in shop, whose clone is shallow",
    )


def test_a_file_of_a_submodule_is_unchecked(shop: Shop, tmp_path: Path) -> None:
    outer = GitRepo(tmp_path / "outer")
    outer.git("submodule", "--quiet", "add", f"file://{shop.world.folder}", "parts/shop")
    outer.commit("Take the shop")
    repos = {"outer": Repository(Repo(name="outer", path=str(outer.folder)))}
    (found,) = check_evidence(["outer:parts/shop/src/cart.py:1"], repos)
    assert found.verdict == "unchecked"
    assert "parts/shop of outer is a submodule" in found.why


def test_order_and_references_are_kept_and_long_ones_are_cut_for_show(shop: Shop) -> None:
    refs = ["till.go", "x" * 5_000, "a\0b", "till.go"]
    found = check_evidence(refs, shop.repos)
    assert [one.ref for one in found] == ["till.go", "x" * 300 + "…", "a b", "till.go"]


@given(st.text(max_size=200))
def test_no_reference_breaks_the_check_or_is_found_by_accident(shop: Shop, ref: str) -> None:
    (found,) = check_evidence([f"shop:{ref}"], shop.repos, log=LOG)
    assert found.verdict in ("found", "missing", "unchecked")
    assert found.why


BUILD_LOG = LogEvidence("start\nconnection  refused\tby peer\n\nend")


@pytest.mark.parametrize(
    ("first", "last", "words", "verdict", "why"),
    [
        (1, 0, "", "found", "line 1 of the log"),
        (4, 0, "", "found", "line 4 of the log"),
        (5, 0, "", "missing", "the log has only 4 lines"),
        (-1, 0, "", "missing", "the log has only 4 lines"),
        (1, 5, "", "missing", "the log has only 4 lines"),
        (1, 2, "refused by", "found", "line 1 of the log"),
        (2, 0, "connection refused by peer", "found", "line 2 of the log"),
        (1, 0, '"refused by peer" it says', "found", "it is line 2 of the log"),
        (1, 0, '"never said"', "missing", "these words are not in the log: never said"),
        (2, 0, "it can't be, won't be", "found", "line 2 of the log; what is said of it does not"),
        (0, 0, "refused by", "found", "line 2 of the log"),
        (0, 0, "never said", "missing", "these words are not in the log: never said"),
    ],
)
def test_lines_and_words(first: int, last: int, words: str, verdict: str, why: str) -> None:
    found = BUILD_LOG.check_pointer(
        EvidencePointer(kind="log", first=first, last=last, words=words)
    )
    assert found.verdict == verdict
    assert found.why.startswith(why)


@given(st.text(max_size=200), st.integers(-1, 300), st.integers(0, 300), st.text(max_size=50))
def test_a_line_is_found_only_if_the_log_has_it(
    text: str, first: int, last: int, words: str
) -> None:
    found = LogEvidence(text).check_pointer(
        EvidencePointer(kind="log", first=first, last=last, words=words)
    )
    if found.verdict == "found" and first:
        assert 0 < first <= len(text.split("\n"))
