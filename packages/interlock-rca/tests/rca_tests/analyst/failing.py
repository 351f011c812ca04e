"""Failures for the tests of kinship: made up, one line each."""

from hypothesis import strategies as st

from interlock_rca.records import Failure

_TEXT = st.text(max_size=60)
FAILURES = st.builds(
    Failure,
    id=_TEXT,
    test_name=_TEXT,
    class_name=_TEXT,
    type=_TEXT,
    message=_TEXT,
    stack=_TEXT,
    log=_TEXT,
)
"""Failures of any text at all."""

STACK = """box.ShutException: lid {lid} of the kitchen box is shut
\tat box.Lid.lift(Lid.java:{line})
\tat box.Box.open(Box.java:31)
\tat box.{name}Test.opens{name}(BoxTest.java:9)
\tat java.lang.reflect.Method.invoke(Method.java:498)
"""


def shut(number: int, name: str = "Box", lid: int = 7, line: int = 12) -> Failure:
    """A box that does not open."""
    return Failure(
        id=f"shut-{number}",
        test_name=f"opens{name}",
        class_name=f"box.{name}Test",
        type="box.ShutException",
        message=f"lid {lid} of the kitchen box is shut",
        stack=STACK.format(lid=lid, line=line, name=name),
    )


def refused(number: int, name: str) -> Failure:
    """Every test fails alike when the set-up does."""
    return Failure(
        id=f"refused-{number}",
        test_name=f"test_{name}",
        class_name=f"shop.{name}.Test{name.title()}",
        type="ConnectionError",
        message="could not connect to the ledger service while preparing the schema",
    )


def wrong(number: int, name: str, result: str) -> Failure:
    """A plain assertion of a test."""
    return Failure(
        id=f"wrong-{number}",
        test_name=f"test{name}",
        class_name=f"shop.{name}Test",
        type="AssertionError",
        message=result,
        stack=f"AssertionError: {result}\n\tat shop.{name}Test.test{name}({name}Test.java:5)\n",
    )
