"""Read what test runners and CI systems print: counts, and the names of failed tests."""

from typing import ClassVar

import msgspec


class TestCounts(msgspec.Struct, frozen=True, kw_only=True):
    """The number of tests, of failed and of skipped ones."""

    __test__: ClassVar = False  # pytest must not collect it

    tests: int = 0
    failed: int = 0
    skipped: int = 0


class FailedTest(msgspec.Struct, frozen=True, kw_only=True):
    """A failed test as a console log names it."""

    id: str
    test_name: str = ""
    class_name: str = ""
    type: str = ""
    """The type of the exception or assertion."""
    message: str = ""
    stack: str = ""
    file: str = ""
