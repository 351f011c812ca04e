"""Names tell tests, documents and comments apart; in doubt a file is neither."""

import pytest

from interlock.system.file_kinds import (
    find_kind,
    find_language,
    has_tests,
    is_comment,
    is_document,
    is_test,
)

TESTS = """
test_cart.py cart_test.go src/cart.spec.ts src/cart.test.js CartTest.java CartTests.cs TestCart.java
CartIT.java CartSpec.scala tests/data.json a/__tests__/x.js conftest.py login.feature a.robot
e2e/x.ts
"""
NOT_TESTS = "cart.py latest.py contest.go Protest.java attest.ts src/testimony.py WAIT.java spec.md"
DOCUMENTS = "README.md README LICENSE.txt docs/a.rst CHANGELOG notes.adoc CODEOWNERS"
NOT_DOCUMENTS = "requirements.txt CMakeLists.txt logo.svg data.txt readme.py mdx.js notice.yaml"


@pytest.mark.parametrize("path", TESTS.split())
def test_a_test(path: str) -> None:
    assert is_test(path)


@pytest.mark.parametrize("path", NOT_TESTS.split())
def test_no_test(path: str) -> None:
    assert not is_test(path)


@pytest.mark.parametrize("path", DOCUMENTS.split())
def test_a_document(path: str) -> None:
    assert is_document(path)


@pytest.mark.parametrize("path", NOT_DOCUMENTS.split())
def test_no_document(path: str) -> None:
    assert not is_document(path)


@pytest.mark.parametrize(
    ("line", "path", "expected"),
    [
        ("  # why", "a.py", True),
        ("#!/bin/sh", "a.sh", False),
        ("#include <x.h>", "a.c", False),
        ("// why", "a.go", True),
        ("//go:build linux", "a.go", False),
        ("/* why */", "a.java", True),
        ("/* why */ int x;", "a.java", False),
        (" * the words of a comment", "A.java", True),
        (" * @param x", "A.java", True),
        (" */", "A.java", True),
        (" * rate", "A.java", False),
        ("*p = 3;", "a.c", False),
        ("x = 1  # why", "a.py", False),
        ("# heading", "a.unknown", False),
    ],
)
def test_comments(line: str, path: str, expected: bool) -> None:
    assert is_comment(line, path) is expected


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
    assert find_kind(path) == kind


def test_files_that_hold_tests() -> None:
    assert has_tests("tests/test_a.py")
    assert not has_tests("tests/conftest.py")
    assert not has_tests("tests/data.json")
    assert not has_tests("tests/test_a.png")


def test_languages() -> None:
    names = ("a.tsx", "Dockerfile", ".env", "a", "a.kt")
    assert [find_language(name) for name in names] == ["javascript", "shell", "data", "", "java"]
