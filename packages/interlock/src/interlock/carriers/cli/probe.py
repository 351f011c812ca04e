"""Check an agent CLI on this machine against its profile: installed, version, flags in its help.

It asks for a version and for help only: no model is asked, no login is touched.
"""

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from interlock.carriers.cli.process import AgentProcess, OutputLimits, ProcessSpec
from interlock.carriers.cli.profiles import AgentSettings, Profile, build_environment
from interlock.carriers.cli.timeouts import Timeouts
from interlock.system.clock import SystemClock
from interlock.system.errors import SourceError
from interlock.system.process_tree import OutputLine

PROBE_TIMEOUT = 30.0
_MAX_OUTPUT = 1_000_000
_TIMEOUTS = Timeouts(first_byte=PROBE_TIMEOUT, silence=PROBE_TIMEOUT, wall=PROBE_TIMEOUT, grace=1.0)
_VERSION = re.compile(r"\d+\.\d+[0-9A-Za-z.+-]*")
_FLAG = re.compile(r"(?<![\w-])(--?[A-Za-z][\w-]*)")


class ProbeResult(msgspec.Struct, frozen=True):
    """The result of one check."""

    id: str
    ok: bool
    message: str


class ProgramOutput(msgspec.Struct, frozen=True):
    """The output of a program, or why it did not run."""

    text: str = ""
    problem: str = ""


async def run_program(
    program: str, words: tuple[str, ...], profile: Profile, environ: Mapping[str, str]
) -> ProgramOutput:
    """Run the program with these words and nothing on stdin."""
    output = bytearray()

    def read_line(line: OutputLine) -> tuple[()]:
        if len(output) < _MAX_OUTPUT and not line.late:
            output.extend(line.text + b"\n")
        return ()

    env = build_environment(profile, AgentSettings(), environ)
    tag = f"probe:0:{os.getpid()}:{os.urandom(8).hex()}"
    spec = ProcessSpec((program, *words), b"", Path.cwd(), env, tag)
    process = AgentProcess(
        spec, _TIMEOUTS, read_line, SystemClock(), limits=OutputLimits(total=_MAX_OUTPUT)
    )
    try:
        ended = await process.run()
    except SourceError as error:
        return ProgramOutput(problem=str(error))
    text = bytes(output).decode(errors="replace") + ended.stderr.decode(errors="replace")
    if ended.by != "itself":
        return ProgramOutput(text, f"it did not answer within {PROBE_TIMEOUT:.0f} s")
    return ProgramOutput(text, f"exit code {ended.exit_code}" if ended.exit_code else "")


async def find_version(program: str, profile: Profile, environ: Mapping[str, str]) -> str:
    """Return the program's version; empty if it tells none."""
    found = _VERSION.search((await run_program(program, profile.version, profile, environ)).text)
    return found[0].rstrip(".") if found else ""


async def probe_cli(
    program: str, profile: Profile, environ: Mapping[str, str]
) -> list[ProbeResult]:
    """Check version and flags by running the program."""
    version = await find_version(program, profile, environ)
    message = f"version {version}" if version else "it does not report a version"
    found = [ProbeResult("agent.version", bool(version), message)]
    outputs = [await run_program(program, words, profile, environ) for words in profile.help]
    for words, output in zip(profile.help, outputs, strict=True):
        if output.problem:
            message = f"{' '.join(words)}: {output.problem}"
            found.append(ProbeResult("agent.help", False, message))
    known = {flag for output in outputs for flag in _FLAG.findall(output.text)}
    missing = [flag for flag in list_flags(profile) if flag not in known]
    found += [
        ProbeResult("agent.flag", False, f"its help does not mention {flag}") for flag in missing
    ]
    if not missing:
        message = f"its help mentions all {len(list_flags(profile))} flags that Interlock uses"
        found.append(ProbeResult("agent.flags", True, message))
    return found


def list_flags(profile: Profile) -> tuple[str, ...]:
    """Return every flag that a profile may use by itself, without values."""
    flags = {word.partition("=")[0] for word in _list_words(profile) if _FLAG.match(word)}
    return tuple(sorted(flags - set(profile.unlisted)))


def _list_words(profile: Profile) -> Iterator[str]:
    yield from (*profile.argv, *profile.resume, *profile.own_flags)
    for mode in profile.modes.values():
        yield from (*mode.flags, *(mode.resume_flags or ()))
    for option in profile.options.values():
        yield from option.flags


def find_login(profile: Profile, environ: Mapping[str, str]) -> str:
    """Return the login that is visible, without opening files; empty if there is none."""
    for name in profile.login.variables:
        if environ.get(name):
            return name
    home = environ.get("HOME", "")
    for name in profile.login.files:
        if home and Path(name.replace("~", home, 1)).is_file():
            return name
    return ""
