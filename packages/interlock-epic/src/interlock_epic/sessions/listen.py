"""Read the signals of a session from an agent CLI's messages or a command's lines.

Nothing counts that is printed after we asked the process to stop. Tool results, prompts, thinking
and sub-agents never become signals.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Protocol

import msgspec

from interlock.carriers.cli.outcome import (
    FindTimeZone,
    SessionMonitor,
    SessionOutcome,
    judge_session,
)
from interlock.carriers.cli.process import ProcessEnd
from interlock.carriers.cli.profiles import (
    AgentSettings,
    Profile,
    build_command_line,
    build_environment,
    build_timeouts,
    guard_prompt,
)
from interlock.carriers.cli.timeouts import Alive, StreamSign, Timeouts
from interlock.engine.case import Usage
from interlock.signals.lines import LineReader, LineResult, SessionLines
from interlock.signals.streams.events import StreamEvent
from interlock.system.process_tree import OutputLine

OnSignals = Callable[[list[LineResult]], None]


class SessionListener(Protocol):
    """A reader of a process's output that also finds signals."""

    def __call__(self, line: OutputLine) -> Iterable[StreamSign]: ...

    def close(self, ended: ProcessEnd) -> list[LineResult]:
        """Return the signals that only the end of the session completes."""

    def outcome(self, ended: ProcessEnd) -> SessionOutcome | None:
        """Return the profile's judgement of the end, or None without a profile."""


class SessionCommand(msgspec.Struct, frozen=True):
    """The process to start for one prompt; `file_prompt` is the prompt if it goes into a file."""

    argv: tuple[str, ...]
    stdin: bytes
    file_prompt: str = ""


class AgentDialect(Protocol):
    """One kind of agent: how to start it and how to read it."""

    name: str

    @property
    def timeouts(self) -> Timeouts: ...

    def build_environment(self, environ: Mapping[str, str]) -> dict[str, str]: ...

    def build_command(self, prompt: str, prompt_file: Path, own_folder: bool) -> SessionCommand: ...

    def open_listener(self, now: float, on_signals: OnSignals) -> SessionListener: ...


def _exited_by_itself(ended: ProcessEnd) -> bool:
    """Return True unless the process was killed."""
    return ended.by == "itself" and ended.exit_code is not None and ended.exit_code >= 0


class RawListener:
    """Reads a plain command's output line by line; Markdown has no meaning there."""

    def __init__(self, on_signals: OnSignals) -> None:
        self._reader = LineReader("raw")
        self._on_signals = on_signals

    def __call__(self, line: OutputLine) -> Iterable[StreamSign]:
        text = line.text.decode("utf-8", "replace")
        if line.half:
            self._reader.feed(text)
        elif not line.late:
            found = self._reader.feed(f"{text}\n")
            if found:
                self._on_signals(found)
        return (Alive(),)

    def close(self, ended: ProcessEnd) -> list[LineResult]:
        return self._reader.close(_exited_by_itself(ended))

    def outcome(self, ended: ProcessEnd) -> SessionOutcome | None:
        return None


class ExecDialect:
    """Any command: it gets the prompt on stdin, and its stdout is read line by line."""

    name = "exec"

    def __init__(self, argv: tuple[str, ...]) -> None:
        self._argv = argv

    @property
    def timeouts(self) -> Timeouts:
        return Timeouts(grace=2.0)

    def build_environment(self, environ: Mapping[str, str]) -> dict[str, str]:
        return dict(environ)

    def build_command(self, prompt: str, prompt_file: Path, own_folder: bool) -> SessionCommand:
        return SessionCommand(self._argv, prompt.encode(errors="replace"))

    def open_listener(self, now: float, on_signals: OnSignals) -> SessionListener:
        return RawListener(on_signals)


class MessageListener(SessionMonitor):
    """Reads the messages in an agent CLI's stream."""

    def __init__(
        self, profile: Profile, now: float, zones: FindTimeZone, on_signals: OnSignals
    ) -> None:
        super().__init__(profile, now, zones)
        self._lines = SessionLines()
        self._on_signals = on_signals

    def _read_event(self, event: StreamEvent) -> Iterator[StreamSign]:
        found = self._lines.read_events([event])
        if found:
            self._on_signals(found)
        yield from super()._read_event(event)

    def close(self, ended: ProcessEnd) -> list[LineResult]:
        if self._plain is not None:
            reader = LineReader("message")
            reader.feed(self._read_final_text())
            return reader.close(_exited_by_itself(ended))
        return self._lines.close(self._reader.final_message is not None)

    def outcome(self, ended: ProcessEnd) -> SessionOutcome:
        usage = Usage(self.usage.tokens, self.usage.money)
        report = self.build_report(ended, usage)
        return judge_session(self._profile.outcome, self.build_facts(ended), report, "text")


class CliDialect:
    """An agent CLI with its profile; with `bare`, a prompt that is a command of the CLI is sent
    unchanged.
    """

    def __init__(
        self,
        profile: Profile,
        settings: AgentSettings,
        program: str,
        zones: FindTimeZone,
        *,
        bare: bool = False,
    ) -> None:
        self.name = profile.name
        self._profile = msgspec.structs.replace(profile, guard=()) if bare else profile
        self._settings = settings
        self._program = program
        self._zones = zones

    @property
    def timeouts(self) -> Timeouts:
        return build_timeouts(self._profile, self._settings)

    def build_environment(self, environ: Mapping[str, str]) -> dict[str, str]:
        return build_environment(self._profile, self._settings, environ)

    def build_command(self, prompt: str, prompt_file: Path, own_folder: bool) -> SessionCommand:
        made = build_command_line(
            self._profile,
            self._settings,
            self._program,
            guard_prompt(self._profile, prompt, "text"),
            prompt_path=prompt_file,
            own_folder=own_folder,
        )
        return SessionCommand(made.argv, made.stdin, made.prompt if made.prompt_file else "")

    def open_listener(self, now: float, on_signals: OnSignals) -> SessionListener:
        return MessageListener(self._profile, now, self._zones, on_signals)
