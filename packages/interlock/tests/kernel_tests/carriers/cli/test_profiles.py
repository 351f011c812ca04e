"""Profiles of agent CLIs: their commands, settings and environment."""

from math import inf
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.carriers.cli.probe import find_login, list_flags
from interlock.carriers.cli.profiles import (
    MAX_ARGUMENT,
    PROFILE_NAMES,
    AgentSettings,
    CommandLine,
    Profile,
    allow_writing,
    build_command_line,
    build_environment,
    build_timeouts,
    filter_environment,
    guard_prompt,
    list_profiles,
    may_skip_permissions,
    read_agent_settings,
    read_profile,
)
from interlock.carriers.cli.timeouts import Timeouts
from interlock.system.errors import SourceError

PAPER = Path("/papers/prompt-1.md")


def command(known: Profile, settings: AgentSettings | None = None, **more: Any) -> CommandLine:
    given_: dict[str, Any] = {"prompt_path": PAPER, "own_folder": True, **more}
    prompt = guard_prompt(known, given_.pop("prompt", "do it"), given_.pop("language", "json"))
    settings = msgspec.structs.replace(
        settings or AgentSettings(), directories=tuple(given_.pop("directories", ()))
    )
    return build_command_line(known, settings, "/bin/x", prompt, **given_)


@pytest.mark.parametrize("known", list_profiles(), ids=PROFILE_NAMES)
def test_nothing_skips_permissions_unless_a_user_says_so(known: Profile) -> None:
    assert not may_skip_permissions(known, AgentSettings())
    for session in ("", "s-1") if known.can_resume else ("",):
        words = command(known, session_id=session).argv
        assert not set(words) & set(known.unsafe)
        assert not any("dangerously" in word or "yolo" in word for word in words)
    assert not known.modes[known.mode].unsafe
    assert not [name for name in known.set if "PERMISSION" in name or "YOLO" in name]


@pytest.mark.parametrize("known", list_profiles(), ids=PROFILE_NAMES)
def test_what_skips_permissions_is_known(known: Profile) -> None:
    for name, mode in known.modes.items():
        assert may_skip_permissions(known, AgentSettings(permission_mode=name)) == mode.unsafe
    for flag in known.unsafe:
        assert may_skip_permissions(known, AgentSettings(flags=(flag,)))
        assert may_skip_permissions(known, AgentSettings(flags=(f"{flag}=1",)))


@pytest.mark.parametrize("known", list_profiles(), ids=PROFILE_NAMES)
def test_a_profile_is_sound(known: Profile) -> None:
    assert known.mode in known.modes
    assert known.outcome[-1].when == type(known.outcome[-1].when)()
    assert known.traps
    assert known.options.keys() <= {"model", "budget", "allowed_tools", "directories"}
    assert all("{}" in "".join(option.flags) for option in known.options.values())
    places = {"stdin": None, "argv": "{prompt}", "file": "{file}"}[known.prompt]
    for template in (known.argv, known.resume) if known.can_resume else (known.argv,):
        assert template.count("{options}") == template.count("{flags}") == 1
        assert places is None or places in template
    assert not known.can_resume or any("{session}" in word for word in known.resume)
    clocks = build_timeouts(known, AgentSettings())
    assert clocks.after_result >= 6
    assert clocks.silence > 300


@pytest.mark.parametrize("known", list_profiles(), ids=PROFILE_NAMES)
def test_no_template_is_left_in_a_command(known: Profile) -> None:
    settings = AgentSettings(model="m" if "model" in known.options else "", flags=("--mine",))
    for session in ("", "s-1") if known.can_resume else ("",):
        found = command(known, settings, session_id=session, directories=("/d",))
        assert found.argv[0] == "/bin/x"
        assert "--mine" in found.argv
        assert not any("{" in word and "}" in word and word[0] != "{" for word in found.argv[1:])
        assert not any(
            word in ("{options}", "{flags}", "{prompt}", "{file}") for word in found.argv
        )
        assert session in " ".join(found.argv)
        assert ("do it" in found.argv) == (known.prompt == "argv")
        assert found.stdin.startswith(b"do it") == (known.prompt == "stdin")
        assert (found.prompt_file is not None) == (known.prompt == "file")


@given(st.sampled_from(PROFILE_NAMES), st.text(alphabet="/@!# \n\tabü", max_size=12))
def test_a_prompt_is_kept_whole_and_never_starts_a_command(name: str, prompt: str) -> None:
    known = read_profile(name)
    output = guard_prompt(known, prompt)
    assert prompt in output
    if known.guard:
        assert not output.lstrip().startswith(known.guard)


@given(st.text(max_size=30), st.booleans())
def test_no_word_of_a_command_is_too_long_or_has_a_nul(prompt: str, long: bool) -> None:
    prompt = prompt * 20_000 if long else prompt
    words = command(read_profile("cursor"), prompt=prompt).argv
    assert all(len(word.encode(errors="replace")) <= MAX_ARGUMENT for word in words)
    assert not any("\0" in word for word in words)


def test_what_our_environment_has_is_kept_from_them() -> None:
    ours = {"PATH": "/bin", "AWS_SECRET_ACCESS_KEY": "x", "NPM_TOKEN": "x", "INTERLOCK_DB": "x"}
    for known in list_profiles():
        found = build_environment(known, AgentSettings(), ours)
        assert found["PATH"] == "/bin"
        assert not {"AWS_SECRET_ACCESS_KEY", "NPM_TOKEN", "INTERLOCK_DB"} & found.keys()
        let_in = build_environment(known, AgentSettings(let_in=("AWS_*",)), ours)
        assert "AWS_SECRET_ACCESS_KEY" in let_in


def test_one_cli_does_not_see_the_key_of_another() -> None:
    ours = {"ANTHROPIC_API_KEY": "a", "OPENAI_API_KEY": "o", "CURSOR_API_KEY": "c"}
    seen = {
        name: set(build_environment(read_profile(name), AgentSettings(), ours)) & ours.keys()
        for name in ("claude", "codex", "cursor", "gemini", "copilot")
    }
    assert seen == {
        "claude": {"ANTHROPIC_API_KEY"},
        "codex": {"OPENAI_API_KEY"},
        "cursor": {"CURSOR_API_KEY"},
        "gemini": set(),
        "copilot": set(),
    }


def test_what_a_user_sets_goes_before_all() -> None:
    known = read_profile("claude")
    ours = {"DISABLE_AUTOUPDATER": "0"}
    assert build_environment(known, AgentSettings(), {})["DISABLE_AUTOUPDATER"] == "1"
    assert build_environment(known, AgentSettings(), ours)["DISABLE_AUTOUPDATER"] == "0"
    settings = AgentSettings(env={"DISABLE_AUTOUPDATER": "2"})
    assert build_environment(known, settings, ours)["DISABLE_AUTOUPDATER"] == "2"


def test_opencode_is_told_its_mode_by_a_variable() -> None:
    found = build_environment(
        read_profile("opencode"), AgentSettings(), {"OPENCODE_PERMISSION": "{}"}
    )
    assert '"*":"deny"' in found["OPENCODE_PERMISSION"]


BAD_SETTINGS: dict[str, tuple[str, dict[str, Any], str]] = {
    "unknown": ("claude", {"colour": "red"}, "[agent.claude]: Object contains unknown field"),
    "wrong kind": ("claude", {"model": 3}, "[agent.claude]: Expected `str`"),
    "no such mode": (
        "codex",
        {"permission_mode": "yes"},
        "permission_mode must be one of read-only",
    ),
    "no flag for it": ("codex", {"budget": 1.0}, "Codex CLI has no flag for budget"),
    "no tools to allow": ("aider", {"allowed_tools": ["x"]}, "no flag for allowed_tools"),
    "folder": ("claude", {"folder": "/tmp"}, "folder must be own or project, not '/tmp'"),
    "budget": ("claude", {"budget": -1.0}, "budget must be more than 0 and at most 1,000,000"),
    "clock": ("claude", {"clocks": {"tea": 5}}, "clocks: use only after_result, first_byte"),
    "no seconds": ("claude", {"clocks": {"wall": -5}}, "the clock wall must be 0 or more seconds"),
    "nul": ("claude", {"model": "a\0b"}, "contains a NUL character"),
    "variable": ("claude", {"env": {"A=B": "x"}}, "the name of a variable is not valid"),
}


@pytest.mark.parametrize(("name", "table", "words"), BAD_SETTINGS.values(), ids=BAD_SETTINGS)
def test_settings_that_cannot_be_followed(name: str, table: dict[str, Any], words: str) -> None:
    with pytest.raises(SourceError) as caught:
        read_agent_settings(table, read_profile(name))
    assert words in str(caught.value)


def test_clocks_of_a_user_go_before_those_of_a_profile() -> None:
    settings = read_agent_settings(
        {"clocks": {"silence": 5, "wall": inf}}, read_profile("opencode")
    )
    found = build_timeouts(read_profile("opencode"), settings)
    assert (found.silence, found.first_byte, found.wall) == (5.0, 300.0, inf)
    assert found.tool == Timeouts().tool


def test_a_name_that_is_none() -> None:
    with pytest.raises(SourceError, match="use one of claude, codex"):
        read_profile("../claude")


def test_flags_are_named_without_their_values() -> None:
    assert "--allow-tool" in list_flags(read_profile("copilot"))
    assert "--resume" in list_flags(read_profile("copilot"))
    assert not [flag for flag in list_flags(read_profile("codex")) if "sandbox_mode" in flag]


def test_a_login_is_seen_without_opening_anything(tmp_path: Path) -> None:
    known = read_profile("claude")
    assert find_login(known, {"HOME": str(tmp_path)}) == ""
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude" / ".credentials.json").touch(mode=0o000)
    assert find_login(known, {"HOME": str(tmp_path)}) == "~/.claude/.credentials.json"
    assert find_login(known, {"ANTHROPIC_API_KEY": "x"}) == "ANTHROPIC_API_KEY"


@pytest.mark.parametrize("known", list_profiles(), ids=lambda known: known.name)
def test_nobody_is_started_unsafely_to_let_it_write(known: Profile) -> None:
    settings = allow_writing(known, AgentSettings())
    assert not may_skip_permissions(known, settings)
    mine = AgentSettings(permission_mode=known.mode)
    assert allow_writing(known, mine) == mine


OURS = {
    "PATH": "/bin",
    "HOME": "/home/me",
    "LC_ALL": "C",
    "https_proxy": "http://proxy",
    "AGENT_KEY": "k",
    "AGENT_KEY_OLD": "o",
    "CLOUD_SECRET": "s",
    "GH_TOKEN": "t",
    "DATABASE_URL": "postgres://me:pw@db",
    "path": "lower",
    "INTERLOCK_TAG": "w:1:1:a",
    "LD_PRELOAD": "/evil.so",
    "SSH_AUTH_SOCK": "/s",
}


def test_everyone_gets_what_programs_need_and_no_more() -> None:
    assert filter_environment(OURS).keys() == {"PATH", "HOME", "LC_ALL", "https_proxy"}


def test_a_profile_lets_in_by_name_or_pattern() -> None:
    assert filter_environment(OURS, ["AGENT_KEY"]).keys() - filter_environment(OURS).keys() == {
        "AGENT_KEY"
    }
    assert "AGENT_KEY_OLD" in filter_environment(OURS, ["AGENT_*"])
    assert filter_environment(OURS, ["agent_*", "[", "NOSUCH"]) == filter_environment(OURS)


def test_what_is_given_also_wins() -> None:
    assert filter_environment(OURS, also={"HOME": "/none", "A": "1"})["HOME"] == "/none"
    assert OURS["HOME"] == "/home/me"
