"""Names tell tests, documents and comments apart; in doubt a file is neither."""

import pytest

from interlock.system.file_kinds import is_comment, is_document, is_test

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
