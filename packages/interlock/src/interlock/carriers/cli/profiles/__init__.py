"""Profiles of agent CLIs: how each is started, addressed and judged, and what a user may set.

A profile is a TOML file beside this module. Together with the user's `[agent.NAME]` settings and a
prompt it gives the command line, stdin and the environment; a prompt cannot be taken for a command.
By default an agent has the least privilege; permissions are skipped only if a user sets that. The
environment is a white list, because the secret of another tool may have any name.
"""

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

import msgspec

from interlock.carriers.cli.timeouts import CLOCK_NAMES, Timeouts
from interlock.engine.circuit import Language
from interlock.signals.streams import StreamFormat
from interlock.system.errors import SourceError

COMMON_VARIABLES = (  # noqa: SIM905 - shorter to read than a list
    "PATH HOME USER LOGNAME SHELL LANG LANGUAGE LC_* TERM COLORTERM NO_COLOR TZ TMPDIR XDG_*"
    " HTTP_PROXY HTTPS_PROXY NO_PROXY ALL_PROXY http_proxy https_proxy no_proxy all_proxy"
    " SSL_CERT_FILE SSL_CERT_DIR NODE_EXTRA_CA_CERTS REQUESTS_CA_BUNDLE"
    " VIRTUAL_ENV NVM_DIR NVM_BIN PYENV_ROOT JAVA_HOME GOPATH GOROOT CARGO_HOME RUSTUP_HOME"
).split()


def filter_environment(
    environ: Mapping[str, str], let_in: Iterable[str] = (), also: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return the common variables, those that match `let_in` (such as `ANTHROPIC_*`), and
    `also`."""
    patterns = (*COMMON_VARIABLES, *let_in)
    kept = {
        name: value
        for name, value in environ.items()
        if any(fnmatchcase(name, pattern) for pattern in patterns)
    }
    return kept | dict(also or {})


PROFILE_NAMES = ("claude", "codex", "cursor", "gemini", "opencode", "copilot", "aider")
OutcomeKind = Literal["accept", "unreadable", "limit", "timeout", "crash"]


class OutcomeCondition(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The condition of a row; facts it does not name may have any value."""

    end: str | None = None
    error: bool | None = None
    turns: Literal["none", "some", "unknown"] | None = None
    text: bool | None = None
    open: bool | None = None
    limited: bool | None = None
    began: bool | None = None
    by: Literal["itself", "us", "clock"] | None = None
    exit: Literal["zero", "other", "signal", "unknown"] | None = None
    exit_code: int | None = None


class OutcomeRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A row of a truth table; the first that matches decides."""

    when: OutcomeCondition
    then: OutcomeKind
    why: str = ""


class Option(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The way a setting becomes flags: one per value, or one for all values joined."""

    flags: tuple[str, ...]
    join: str = ""


class Mode(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A permission mode: what it allows, and its flags."""

    means: str
    flags: tuple[str, ...] = ()
    resume_flags: tuple[str, ...] | None = None
    set: dict[str, str] = {}
    unsafe: bool = False


class Login(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The places where a login can be seen without asking the CLI."""

    variables: tuple[str, ...] = ()
    files: tuple[str, ...] = ()


class Profile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The description of one agent CLI."""

    name: str
    title: str
    commands: tuple[str, ...]
    dialect: StreamFormat
    prompt: Literal["stdin", "argv", "file"]
    argv: tuple[str, ...]
    mode: str
    modes: dict[str, Mode]
    outcome: tuple[OutcomeRule, ...]
    folder: Literal["own", "project"]
    writing_mode: str = ""
    """The mode in which the CLI may change files in its folder; empty if only an unsafe mode
    would."""
    resume: tuple[str, ...] = ()
    """The words that continue a session; empty if sessions cannot be continued."""
    resume_in: Literal["same-folder", "any-folder"] = "any-folder"
    own_flags: tuple[str, ...] = ()
    """Flags for a work folder of our own, which can be trusted."""
    guard: tuple[str, ...] = ()
    """The beginnings that turn a prompt into a command."""
    closing: str = ""
    """A sentence that ends every prompt."""
    unsafe: tuple[str, ...] = ()
    """Flags that skip permissions; only used if the user sets them."""
    options: dict[str, Option] = {}
    let_in: tuple[str, ...] = ()
    set: dict[str, str] = {}
    clocks: dict[str, float] = {}
    limit_words: tuple[str, ...] = ()
    """Words on stderr or in an error that mean a rate limit."""
    version: tuple[str, ...] = ("--version",)
    help: tuple[tuple[str, ...], ...] = ()
    unlisted: tuple[str, ...] = ()
    """Flags that work although --help does not name them."""
    seen: Literal["run", "documented"] = "run"
    """True if its events were seen by running it, false if they are known from its
    documentation."""
    login: Login = Login()
    traps: tuple[str, ...] = ()

    @property
    def can_resume(self) -> bool:
        return bool(self.resume)


@cache
def read_profile(name: str) -> Profile:
    """Read the profile of that name; its table ends with the rows that all profiles share."""
    if name not in PROFILE_NAMES:
        raise SourceError(
            f"{name!r} is not a known agent CLI; use one of {', '.join(PROFILE_NAMES)}"
        )
    shared = _read_table("shared")["outcome"]
    table = _read_table(name)
    try:
        found = {**table, "name": name, "outcome": [*table["outcome"], *shared]}
        return msgspec.convert(found, Profile)
    except (msgspec.ValidationError, KeyError) as error:
        raise SourceError(f"the profile {name}.toml is damaged: {error}") from None


def list_profiles() -> tuple[Profile, ...]:
    return tuple(read_profile(name) for name in PROFILE_NAMES)


def _read_table(name: str) -> dict[str, Any]:
    text = (
        files("interlock.carriers.cli.profiles")
        .joinpath(f"{name}.toml")
        .read_text(encoding="utf-8")
    )
    return tomllib.loads(text)


_MAX_BUDGET = 1_000_000
_CLOCK_KEYS = {*CLOCK_NAMES, "grace"}


class AgentSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The `[agent.NAME]` settings of an agent CLI, all optional."""

    command: str = ""
    """The program to run, if it is not found by its usual name."""
    model: str = ""
    flags: tuple[str, ...] = ()
    budget: float | None = None
    permission_mode: str = ""
    allowed_tools: tuple[str, ...] = ()
    directories: tuple[str, ...] | None = None
    """Folders the agent may read beside its own; the project's by default."""
    env: dict[str, str] = {}
    let_in: tuple[str, ...] = ()
    """Names of our variables that the agent may see, such as AWS_*."""
    clocks: dict[str, float] = {}
    folder: str = ""
    """`own` or `project`: the folder in which the agent works."""
    resume: bool = True


def read_agent_settings(table: Any, profile: Profile) -> AgentSettings:
    """Read the settings of one agent; SourceError for a setting that the profile cannot follow."""
    place = f"[agent.{profile.name}]"
    try:
        found = msgspec.convert(table, AgentSettings)
    except msgspec.ValidationError as error:
        raise SourceError(f"{place}: {error}") from None
    for name in ("model", "budget", "allowed_tools"):
        if getattr(found, name) and name not in profile.options:
            raise SourceError(f"{place}: {profile.title} has no flag for {name}; remove it")
    if found.permission_mode and found.permission_mode not in profile.modes:
        known = ", ".join(profile.modes)
        raise SourceError(f"{place}: permission_mode must be one of {known}")
    if found.folder not in ("", "own", "project"):
        raise SourceError(f"{place}: folder must be own or project, not {found.folder!r}")
    if found.budget is not None and not 0 < found.budget <= _MAX_BUDGET:
        raise SourceError(f"{place}: budget must be more than 0 and at most 1,000,000")
    _check_words(place, found)
    build_timeouts(profile, found)
    return found


def build_timeouts(profile: Profile, settings: AgentSettings) -> Timeouts:
    """Return the five timeouts: the user's, else the profile's."""
    seconds = {**profile.clocks, **settings.clocks}
    if not seconds.keys() <= _CLOCK_KEYS:
        known = ", ".join(sorted(_CLOCK_KEYS))
        raise SourceError(f"[agent.{profile.name}] clocks: use only {known}")
    return msgspec.convert(seconds, Timeouts)


def allow_writing(profile: Profile, settings: AgentSettings) -> AgentSettings:
    """Return settings that let the agent change files in its folder; a mode that the user set
    stays."""
    if settings.permission_mode or not profile.writing_mode:
        return settings
    return msgspec.structs.replace(settings, permission_mode=profile.writing_mode)


def find_mode(profile: Profile, settings: AgentSettings) -> Mode:
    return profile.modes[settings.permission_mode or profile.mode]


def may_skip_permissions(profile: Profile, settings: AgentSettings) -> bool:
    """Return whether the user's settings skip permissions."""
    flags = {flag.partition("=")[0] for flag in settings.flags}
    return find_mode(profile, settings).unsafe or bool(flags & set(profile.unsafe))


def _check_words(place: str, found: AgentSettings) -> None:
    words = [found.command, found.model, *found.flags, *found.allowed_tools, *found.env.values()]
    if any("\0" in word for word in words) or any("=" in name or not name for name in found.env):
        raise SourceError(
            f"{place}: a value contains a NUL character, or the name of a variable is not valid"
        )


MAX_ARGUMENT = 120_000
"""The longest word of a command line, in bytes; the kernel takes 128 KB."""
_GUARD_TEXT = "What follows is a task in plain text, not a command.\n\n"


class CommandLine(msgspec.Struct, frozen=True):
    """A command to start; `prompt_file` must hold `prompt` before that."""

    argv: tuple[str, ...]
    stdin: bytes
    prompt: str
    prompt_file: Path | None = None


def build_command_line(
    profile: Profile,
    settings: AgentSettings,
    program: str,
    prompt: str,
    *,
    prompt_path: Path,
    own_folder: bool,
    session_id: str = "",
) -> CommandLine:
    """Return the command for one guarded prompt; with a session, the command that continues it.

    A prompt that is passed as a file is written to `prompt_path`.
    """
    template = profile.resume if session_id else profile.argv
    by_file = profile.prompt == "file"
    word = prompt
    if profile.prompt == "argv" and ("\0" in prompt or len(prompt.encode()) > MAX_ARGUMENT):
        by_file = True
        word = f"Your task is in the file {prompt_path}. Read all of it and do what it says."
    named = {"{prompt}": word, "{file}": str(prompt_path)}
    words: list[str] = [program]
    for part in template:
        if part == "{options}":
            words += _list_option_flags(profile, settings, resumed=bool(session_id))
        elif part == "{flags}":
            words += [*(profile.own_flags if own_folder else ()), *settings.flags]
        else:
            words.append(named.get(part, part.replace("{session}", session_id)))
    stdin = prompt.encode() if profile.prompt == "stdin" else b""
    return CommandLine(tuple(words), stdin, prompt, prompt_path if by_file else None)


def guard_prompt(profile: Profile, prompt: str, language: Language = "json") -> str:
    """Return the prompt so that the CLI reads it as text, with its own words about JSON answers."""
    commanding = prompt.lstrip().startswith(profile.guard) if profile.guard else False
    closing = f"\n\n{profile.closing}\n" if profile.closing and language == "json" else ""
    return f"{_GUARD_TEXT if commanding else ''}{prompt}{closing}"


def build_environment(
    profile: Profile, settings: AgentSettings, environ: Mapping[str, str]
) -> dict[str, str]:
    """Return the variables that the CLI needs, without those of other tools; the user's settings
    win."""
    mode = find_mode(profile, settings)
    kept = filter_environment(environ, (*profile.let_in, *settings.let_in))
    return {**profile.set, **kept, **mode.set, **settings.env}


def _list_option_flags(
    profile: Profile, settings: AgentSettings, *, resumed: bool
) -> Iterator[str]:
    mode = find_mode(profile, settings)
    resumes = resumed and mode.resume_flags is not None
    yield from (mode.resume_flags or ()) if resumes else mode.flags
    given: dict[str, tuple[str, ...]] = {
        "model": (settings.model,) if settings.model else (),
        "budget": (f"{settings.budget:g}",) if settings.budget else (),
        "allowed_tools": settings.allowed_tools,
        "directories": settings.directories or (),
    }
    for name, values in given.items():
        if name in profile.options and values:
            yield from _expand_option(profile.options[name], values)


def _expand_option(option: Option, values: tuple[str, ...]) -> Iterator[str]:
    for value in (option.join.join(values),) if option.join else values:
        yield from (part.replace("{}", value) for part in option.flags)
