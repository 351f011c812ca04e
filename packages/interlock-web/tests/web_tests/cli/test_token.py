"""Tokens on the command line: shown once, listed without a secret, revoked by name."""

from pathlib import Path

import pytest

from tests.world.command_line import World


def test_a_token_is_shown_once(tmp_path: Path) -> None:
    world = World(tmp_path)
    assert "there are no tokens" in world.say("token", "list").out
    made = world.say("token", "create", "ci", "--scope", "upload, read", "--expires", "90d")
    assert (made.code, made.out.startswith("interlock_")) == (0, True)
    assert "token ci (read, upload, until TIME): keep it now" in made.err
    listed = world.say("token", "list")
    assert made.out.strip() not in listed.out
    assert listed.out.splitlines()[1].split()[2:4] == ["read,upload", "valid"]
    assert world.say("token", "revoke", "ci").out == "token ci is revoked\n"
    state = world.say("token", "list", "--json").json["tokens"][0]
    assert (state["state"], state["name"]) == ("revoked", "ci")
    assert made.out.strip() not in str(state)


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("create", "a b"), "name for a token"),
        (("create", "x" * 65), "name for a token"),
        (("create", "a", "--scope", "root"), "'root' is none"),
        (("create", "a", "--scope", ","), "name at least one"),
        (("create", "a", "--expires", "soon"), "is not a duration"),
    ],
)
def test_words_that_make_no_token(tmp_path: Path, words: tuple[str, ...], problem: str) -> None:
    output = World(tmp_path).say("token", *words)
    assert (output.code, output.out) == (2, "")
    assert problem in output.err
    assert not (tmp_path / ".interlock").exists()


def test_a_token_that_is_not_there(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.say("token", "create", "a")
    output = world.say("token", "revoke", "b")
    assert (output.code, "there is no token 'b'" in output.err) == (1, True)
