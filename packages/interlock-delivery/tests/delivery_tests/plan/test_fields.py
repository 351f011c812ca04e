"""Test splitting commands into words, and refusing what only a shell can do."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.system.errors import SourceError
from interlock_delivery.plan.fields import (
    parse_exit_code,
    parse_prefix,
    parse_timeout,
    split_command,
    strip_backticks,
)


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("pytest -q", ("pytest", "-q")),
        ("grep -E 'a|b' \"c;d\"", ("grep", "-E", "a|b", "c;d")),
        (r"echo a\|b", ("echo", "a|b")),
        ("sh -c 'make && make test > log'", ("sh", "-c", "make && make test > log")),
        (["a b", "&&", ""], ("a b", "&&", "")),
        ("pytest --cov=src", ("pytest", "--cov=src")),
    ],
)
def test_words(command: str | list[str], expected: tuple[str, ...]) -> None:
    assert split_command(command) == expected


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        ("a && b", "uses '&&'"),
        ("a | b", "uses '|'"),
        ("a > b", "uses '>'"),
        ("a; b", "uses ';'"),
        ("a $(b)", r"uses '\$\('"),
        ("a `b`", "uses '`'"),
        ("CI=1 pytest", "write env CI=1"),
        ("a 'b", "cannot be split into words: no closing quotation"),
        ("", "there is no command"),
        ([], "there is no command"),
        ([""], "there is no command"),
        (["a", "b\0c"], "contains control characters"),
        ("a 'b\nc'", "contains control characters"),
        ("a " * 20_000, "is too long"),
    ],
)
def test_what_cannot_be_run_is_refused(command: str | list[str], problem: str) -> None:
    with pytest.raises(SourceError, match=problem):
        split_command(command)


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("", ()),
        ("-", ()),
        ("directly", ()),
        ("Run directly", ()),
        ("Run commands directly in the terminal.", ()),
        ("Native shell", ()),
        ("`docker compose exec app`", ("docker", "compose", "exec", "app")),
        ("Use `docker exec app <command>` please", ("docker", "exec", "app")),
        ("ssh host", ("ssh", "host")),
        ("`./in-box --`", ("./in-box", "--")),
        ("`<command>`", ()),
    ],
)
def test_prefixes(how: str, expected: tuple[str, ...]) -> None:
    assert parse_prefix(how) == expected


@pytest.mark.parametrize(
    "how", ["Use the devcontainer", "`mcp__box__exec`", "Open VS Code first", "`a && b`"]
)
def test_prose_is_no_prefix(how: str) -> None:
    with pytest.raises(SourceError):
        parse_prefix(how)


def test_exit_codes_and_timeouts() -> None:
    assert (parse_exit_code(""), parse_exit_code("`3`"), parse_exit_code(255)) == (0, 3, 255)
    assert (parse_timeout("", 9.0), parse_timeout("10m", 9.0), parse_timeout(2.5, 9.0)) == (
        9.0,
        600.0,
        2.5,
    )
    for wrong in ("-1", "256", "ok", "1.0", "²", "9" * 50):
        with pytest.raises(SourceError, match="is not an exit code"):
            parse_exit_code(wrong)
    for wrong in ("soon", "0", "-5", "8d", "nan", "9" * 50):
        with pytest.raises(SourceError):
            parse_timeout(wrong, 9.0)


@pytest.mark.parametrize(
    ("cell", "expected"),
    [("`a`", "a"), ("`` a`b ``", "a`b"), ("`a` or `b`", "`a` or `b`"), ("`a", "`a"), ("``", "``")],
)
def test_code(cell: str, expected: str) -> None:
    assert strip_backticks(cell) == expected


@given(st.one_of(st.text(max_size=60), st.text("`'\"\\$(|& ab", max_size=30)))
def test_any_text_is_words_or_refused(text: str) -> None:
    for reading in (split_command, parse_prefix):
        with suppress(SourceError):
            assert all(isinstance(word, str) for word in reading(text))
