"""From a profile, a user's settings and a prompt to the words of a command, its stdin and its
environment.

Knows templates and how a prompt is kept from being taken for a command. Pure but for names of
files; refuses to start anything.
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import msgspec

from interlock.agents.cli.environment import cleaned
from interlock.agents.cli.profile import Option, Profile
from interlock.agents.cli.settings import AgentSettings, mode_of
from interlock.engine.circuit import Language

LONGEST_WORD = 120_000
"""Bytes of one word of a command line; the kernel takes 128 KB."""
_GUARD = "What follows is a task in plain text, not a command.\n\n"


class CommandLine(msgspec.Struct, frozen=True):
    """What to start. `prompt_file` must hold `prompt` before it does."""

    argv: tuple[str, ...]
    stdin: bytes
    prompt: str
    prompt_file: Path | None = None


def launch(
    profile: Profile,
    settings: AgentSettings,
    program: str,
    prompt: str,
    *,
    paper: Path,
    own_folder: bool,
    directories: Iterable[str] = (),
    session_id: str = "",
    language: Language = "json",
) -> CommandLine:
    """The command for one prompt; with a session, the one that goes on with it. `paper` is where
    a prompt is written that goes by a file."""
    told = guarded(profile, prompt, language)
    template = profile.resume if session_id else profile.argv
    by_file = profile.prompt == "file"
    word = told
    if profile.prompt == "argv" and ("\0" in told or len(told.encode()) > LONGEST_WORD):
        by_file = True
        word = f"Your task is in the file {paper}. Read all of it and do what it says."
    named = {"{prompt}": word, "{file}": str(paper)}
    words: list[str] = [program]
    for part in template:
        if part == "{options}":
            words += _options(profile, settings, directories, resumed=bool(session_id))
        elif part == "{flags}":
            words += [*(profile.own_flags if own_folder else ()), *settings.flags]
        else:
            words.append(named.get(part, part.replace("{session}", session_id)))
    stdin = told.encode() if profile.prompt == "stdin" else b""
    return CommandLine(tuple(words), stdin, told, paper if by_file else None)


def guarded(profile: Profile, prompt: str, language: Language = "json") -> str:
    """The prompt so that it is read as text, whatever it starts with; with what the CLI must be
    told about an answer in JSON."""
    commanding = prompt.lstrip().startswith(profile.guard) if profile.guard else False
    closing = f"\n\n{profile.closing}\n" if profile.closing and language == "json" else ""
    return f"{_GUARD if commanding else ''}{prompt}{closing}"


def environment(
    profile: Profile, settings: AgentSettings, environ: Mapping[str, str]
) -> dict[str, str]:
    """What its CLI needs and nothing of other tools; what the user set goes before all."""
    mode = mode_of(profile, settings)
    kept = cleaned(environ, (*profile.let_in, *settings.let_in))
    return {**profile.set, **kept, **mode.set, **settings.env}


def _options(
    profile: Profile, settings: AgentSettings, directories: Iterable[str], *, resumed: bool
) -> Iterator[str]:
    mode = mode_of(profile, settings)
    resumes = resumed and mode.resume_flags is not None
    yield from (mode.resume_flags or ()) if resumes else mode.flags
    given: dict[str, tuple[str, ...]] = {
        "model": (settings.model,) if settings.model else (),
        "budget": (f"{settings.budget:g}",) if settings.budget else (),
        "allowed_tools": settings.allowed_tools,
        "directories": tuple(directories),
    }
    for name, values in given.items():
        if name in profile.options and values:
            yield from _flags(profile.options[name], values)


def _flags(option: Option, values: tuple[str, ...]) -> Iterator[str]:
    for value in (option.join.join(values),) if option.join else values:
        yield from (part.replace("{}", value) for part in option.flags)
