"""Test comparing the changed files with the declared ones."""

import pytest

from interlock_delivery.worktrees.snapshot import WriteSet, compare_write_set, covers


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("a.py", "a.py", True),
        ("a.py", "b/a.py", False),
        ("./a.py", "a.py", True),
        ("src", "src/x/y.py", True),
        ("src/", "src/x/y.py", True),
        ("src/", "srcs/x", False),
        ("*.py", "a.py", True),
        ("*.py", "x/a.py", False),
        ("**/*.py", "a.py", True),
        ("**/*.py", "x/y/a.py", True),
        ("src/**", "src/a/b", True),
        ("src/**", "src", False),
        ("src/**/test.py", "src/test.py", True),
        ("src/**/test.py", "src/a/b/test.py", True),
        ("a?.py", "ab.py", True),
        ("a?.py", "a/.py", False),
        ("a.b", "axb", False),
        ("[x]", "[x]", True),
        ("a+(b)", "a+(b)", True),
        ("new\nline", "new\nline", True),
        ("**", "any/thing", True),
        ("", "a", False),
    ],
)
def test_patterns(pattern: str, path: str, expected: bool) -> None:
    assert covers([pattern], path) is expected


def test_paths_are_sorted_out() -> None:
    found = compare_write_set(
        ["src/a.py", "docs/x.md", "lib/b.py", "src/a.py"],
        ["src/"],
        {"two": ["lib/**", "src/a.py"], "three": ["lib/b.py"]},
    )
    assert found == WriteSet(
        ("src/a.py",), ("docs/x.md",), (("lib/b.py", "three"), ("lib/b.py", "two"))
    )


def test_without_a_declaration_only_the_declared_of_others_count() -> None:
    found = compare_write_set(["a", "b"], [], {"two": ["b"]})
    assert found == WriteSet(("a",), (), (("b", "two"),))


def test_patterns_are_seen_from_the_users_folder() -> None:
    assert compare_write_set(["part/src/a.py", "src/a.py"], ["src/"], prefix="part/") == WriteSet(
        ("part/src/a.py",), ("src/a.py",), ()
    )
