"""What test runners and CI systems print: counts, and the names and messages of failed tests."""

from typing import ClassVar

import msgspec


class TestCounts(msgspec.Struct, frozen=True, kw_only=True):
    """How many tests there were, and how they went."""

    __test__: ClassVar = False  # pytest takes it for a class of tests

    tests: int = 0
    failed: int = 0
    skipped: int = 0


class FailedTest(msgspec.Struct, frozen=True, kw_only=True):
    """A test that failed, as a console log names it."""

    id: str
    test_name: str = ""
    class_name: str = ""
    type: str = ""
    """The exception's or the assertion's type."""
    message: str = ""
    stack: str = ""
    file: str = ""
