"""Features: words, pairs, lines, type and frames; masked, so that runs read alike."""

from interlock.rca.analyst.triage import features
from interlock.rca.records import Failure


def test_features() -> None:
    failure = Failure(
        id="1",
        type="box.ShutException",
        message="KitchenLid is shut",
        stack="\tat box.Lid.open(Lid.java:1)\n",
        log="fine\nERROR oven cold\n",
    )
    assert features(failure) == {
        *(
            "kitchenlid",
            "is",
            "shut",
            "kitchenlid is",
            "is shut",
            "~kitchen",
            "= KitchenLid is shut",
        ),
        *("error", "oven", "cold", "error oven", "oven cold", "= ERROR oven cold"),
        *("~shut", "~error", "~oven", "~cold"),
        *("type shutexception", "innermost product", "frames product", "in box.Lid.open"),
    }


def test_numbers_make_no_difference() -> None:
    one, other = (Failure(id="1", message=f"lid {number} took 0.{number} s") for number in (7, 12))
    assert features(one) == features(other)


def test_nothing_has_none() -> None:
    assert features(Failure(id="1")) == frozenset()
