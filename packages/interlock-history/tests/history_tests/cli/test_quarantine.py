"""Quarantine at the command line: data in the repository, with an owner and an end."""

import pytest

from history_tests.cli.test_history import hand_in, plain
from tests.world.command_line import World

__all__ = ["plain"]
FILE = "interlock-quarantine.toml"


def add(world: World, test: str, *words: str) -> str:
    flags = ("--owner", "@ann", "--reason", "waits for #12", "--on", "2026-10-02")
    said = world.say("quarantine", "add", test, *flags, *words)
    assert said.code == 0, said.err
    return said.out


def test_a_quarantine_from_its_beginning_to_its_end(plain: World) -> None:
    world = plain
    world.write(FILE, "# Ours. Ask before you add.\n")
    out = add(world, "shop::pays", "--days", "10")
    assert out == f"shop::pays is quarantined until 2026-10-12 by @ann; commit {FILE}\n"
    add(world, "shop::no*", "--job", "unit os=linux")
    text = (world.folder / FILE).read_text()
    assert text.startswith("# Ours. Ask before you add.\n")
    assert 'reason = "waits for #12"\nadded = 2026-10-02\nexpires = 2026-10-12\n' in text
    for number, mark in enumerate("x.F.", 1):
        hand_in(world, number, mark)
    said = world.say("quarantine", "check", "--on", "2026-10-05")
    assert said.code == 6
    assert said.out.splitlines() == [
        "  shop::pays (@ann): 7 days left; 1 test not healed yet",
        "! shop::no* (@ann): 11 days left; no test that is remembered matches it",
        "2 entries, 1 to decide on",
    ]
    assert world.say("quarantine", "rm", "shop::no*").code == 0
    for number in range(5, 9):
        hand_in(world, number, ".")
    said = world.say("quarantine", "check", "--on", "2026-10-09")
    assert said.out.splitlines()[0] == (
        "! shop::pays (@ann): 3 days left; healed: passed 5 times in a row; remove it"
    )
    late = world.say("quarantine", "check", "--on", "2026-10-14", "--json").json
    assert late["tests"][0]["findings"] == ["expired", "healed"]
    assert "2026-10-12 (expired)" in world.say("quarantine", "list", "--on", "2026-10-14").out
    assert (
        "quarantined"
        in world.say("history", "top", "--state", "suspected", "--on", "2026-10-05").out
    )
    assert world.say("quarantine", "rm", "shop::pays").code == 0
    assert (world.folder / FILE).read_text().strip() == "# Ours. Ask before you add."
    assert world.say("quarantine", "list").out == "nothing is quarantined\n"


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("shop::x", "--owner", " ", "--reason", "r"), "needs a test, an owner and a reason"),
        (("*", "--owner", "a", "--reason", "r"), "would quarantine every test"),
        (("x", "--owner", "a", "--reason", "r", "--days", "31"), "lasts 1 to 30 days, not 31"),
        (("x", "--owner", "a", "--reason", "r", "--on", "soon"), "write a day such as"),
    ],
)
def test_quarantines_that_nobody_answers_for_are_refused(
    words: tuple[str, ...], why: str, plain: World
) -> None:
    said = plain.say("quarantine", "add", *words)
    assert (said.code, why in said.err) == (2, True), said.err
    assert not (plain.folder / FILE).exists()


@pytest.mark.parametrize(
    "text",
    [
        "[[test]]\ntest = 'a'\n",
        "[[test]]\ntest='a'\nowner=''\nreason='r'\nadded=2026-10-01\nexpires=2026-10-02\n",
        "[[test]]\ntest = 'a'\nowner = 'b'\nreason = 'r'\nadded = 2026-10-01\nexpires = 'later'\n",
        "[[tests]]\n",
        "x = [",
    ],
)
def test_a_file_that_is_wrong_is_named_and_left_alone(text: str, plain: World) -> None:
    plain.write(FILE, text)
    for words in (
        ("list",),
        ("check",),
        ("rm", "a"),
        ("add", "b", "--owner", "c", "--reason", "d"),
    ):
        said = plain.say("quarantine", *words)
        assert (said.code, FILE in said.err) == (2, True), said.err
    assert (plain.folder / FILE).read_text() == text


def test_the_same_test_is_not_quarantined_twice(plain: World) -> None:
    add(plain, "shop::pays")
    said = plain.say("quarantine", "add", "shop::pays", "--owner", "a", "--reason", "b")
    assert (said.code, "is quarantined already" in said.err) == (2, True)
    said = plain.say("quarantine", "rm", "shop::other")
    assert (said.code, "is not in interlock-quarantine.toml" in said.err) == (2, True)
