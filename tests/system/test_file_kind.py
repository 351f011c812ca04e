"""What a path says about a file."""

import pytest

from interlock.system.file_kind import holds_tests, kind_of, language_of


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("src/a.py", "source"),
        ("src/contest.py", "source"),
        ("src/latest.py", "source"),
        ("tests/world.py", "test"),
        ("test_a.py", "test"),
        ("a_test.go", "test"),
        ("src/a.spec.ts", "test"),
        ("src/test/java/ATest.java", "test"),
        ("src/LoginIT.java", "test"),
        ("tests/fixtures/a.py", "fixture"),
        ("testdata/key.pem", "fixture"),
        ("README", "document"),
        ("docs/a.md", "document"),
        ("node_modules/a/index.js", "vendored"),
        ("third_party/a.c", "vendored"),
        ("yarn.lock", "generated"),
        ("web/app.min.js", "generated"),
        ("a_pb2.py", "generated"),
    ],
)
def test_kinds(path: str, kind: str) -> None:
    assert kind_of(path) == kind


def test_files_that_hold_tests() -> None:
    assert holds_tests("tests/test_a.py")
    assert not holds_tests("tests/conftest.py")
    assert not holds_tests("tests/data.json")
    assert not holds_tests("tests/test_a.png")


def test_languages() -> None:
    names = ("a.tsx", "Dockerfile", ".env", "a", "a.kt")
    assert [language_of(name) for name in names] == ["javascript", "shell", "data", "", "java"]
