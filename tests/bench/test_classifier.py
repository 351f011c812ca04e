"""The learner: what it was taught, what it was not, and the same in any order."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.classifier import Classifier, TrainedTriage, extract_features
from interlock_rca.records import Failure
from rca_tests.analyst.failing import shut


def bag(message: str, log: str = "") -> frozenset[str]:
    return extract_features(Failure(id="1", message=message, log=log))


OVEN = [bag(f"oven {number} is cold, gas valve stuck") for number in range(6)]
LID = [bag(f"lid {number} is shut, hinge broken") for number in range(6)]
EXAMPLES = [*((each, "heat") for each in OVEN), *((each, "joint") for each in LID)]


@pytest.mark.parametrize(
    ("message", "label"),
    [("gas valve of oven stuck again", "heat"), ("broken hinge on the lid", "joint")],
)
def test_what_was_taught(message: str, label: str) -> None:
    result = Classifier(EXAMPLES).predict(bag(message))
    assert result.label == label
    assert result.confidence > 0.7
    assert result.reasons


@pytest.mark.parametrize("message", ["no space left for the parcel", ""])
def test_what_was_not_taught_is_not_guessed(message: str) -> None:
    result = Classifier(EXAMPLES).predict(bag(message))
    assert (result.label, result.confidence) == ("", 0.0)


def test_a_clear_label_is_given_also_where_no_example_is_near() -> None:
    def teach(thing: str) -> list[str]:
        return [
            f"{thing} {' '.join(f'{thing}{(at + n) % 40}x' for n in range(8))}" for at in range(40)
        ]

    examples = [(bag(text), thing) for thing in ("oven", "hinge") for text in teach(thing)]
    classifier = Classifier(examples)
    scattered = bag("\n".join(f"oven{number}x" for number in range(0, 40, 8)))
    assert classifier.predict(scattered).label == "oven"
    torn = [f"{thing}{number}x" for thing in ("oven", "hinge") for number in range(0, 40, 8)]
    assert classifier.predict(bag("\n".join(torn))).label == ""


def test_nothing_was_taught() -> None:
    assert Classifier([]).predict(bag("oven is cold")).label == ""


def test_one_kind_only() -> None:
    result = Classifier([(OVEN[0], "heat")]).predict(bag("the oven is cold"))
    assert result.label == "heat"
    assert 0.2 < result.confidence < 0.9
    assert result.reasons


def test_a_rare_kind_is_not_drowned() -> None:
    many = [(bag(f"lid {number} is shut"), "joint") for number in range(60)]
    few = [(bag("oven is cold"), "heat"), (bag("oven is icy"), "heat")]
    assert Classifier(many + few).predict(bag("oven was cold")).label == "heat"


def test_a_label_is_heard_in_what_is_said() -> None:
    examples = [(bag("tests went red today"), "PAINT"), (bag("tests went blue today"), "HINGES")]
    result = Classifier(examples).predict(bag("tests went grey today, the hinges creak"))
    assert result.label == "HINGES"


@given(st.permutations(EXAMPLES))
@settings(max_examples=10, deadline=None)
def test_the_order_of_examples_does_not_matter(examples: list[tuple[frozenset[str], str]]) -> None:
    asked = bag("gas hinge valve lid")
    assert Classifier(examples).predict(asked) == Classifier(EXAMPLES).predict(asked)


def test_what_was_taught_is_said_in_the_words_of_the_examples() -> None:
    cold = [Failure(id=f"{n}", message=f"oven {n} is cold, valve stuck") for n in range(4)]
    teacher = TrainedTriage(
        [*((each, "HEATING") for each in cold), *((shut(n), "LIDS") for n in range(4))]
    )
    assert teacher.triage(shut(9, lid=4)).category == "LIDS"
    assert teacher.triage(Failure(id="1", message="valve of the oven stuck")).category == "HEATING"
    assert teacher.triage(Failure(id="1", message="parcel lost")).category == "unknown"


def test_features() -> None:
    failure = Failure(
        id="1",
        type="box.ShutException",
        message="KitchenLid is shut",
        stack="\tat box.Lid.open(Lid.java:1)\n",
        log="fine\nERROR oven cold\n",
    )
    assert extract_features(failure) == {
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
    assert extract_features(one) == extract_features(other)


def test_nothing_has_none() -> None:
    assert extract_features(Failure(id="1")) == frozenset()
