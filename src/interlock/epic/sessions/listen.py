"""How a session is heard: the decoded messages of an agent CLI, or the lines of a plain command.

Nothing counts that is printed after our own signal to stop. Tool results, prompts, thinking and
sub-agents never become signals.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Protocol

import msgspec

from interlock.agents.cli.outcome import SessionMonitor, SessionOutcome, Zones, judge
from interlock.agents.cli.process import ProcessEnd
from interlock.agents.cli.profiles import AgentSettings, Profile, clocks_of, environment, launch
from interlock.agents.cli.timeouts import Alive, Sight, Timeouts
from interlock.engine.case import Usage
from interlock.signals.lines import Found, LineReader, SessionLines
from interlock.signals.streams.events import StreamEvent
from interlock.system.process_tree import OutputLine

Hear = Callable[[list[Found]], None]


class SessionListener(Protocol):
    """A reader for the supervisor that also finds signals."""

    def __call__(self, line: OutputLine) -> Iterable[Sight]: ...

    def close(self, ended: ProcessEnd) -> list[Found]:
        """The session is over: what its last words say."""

    def outcome(self, ended: ProcessEnd) -> SessionOutcome | None:
        """What its profile makes of how it ended; None where there is no profile."""


class SessionCommand(msgspec.Struct, frozen=True):
    """What to start for one prompt. `paper` holds the prompt where it goes by a file."""

    argv: tuple[str, ...]
    stdin: bytes
    paper: str = ""


class AgentDialect(Protocol):
    """One kind of agent: how it is started and heard."""

    name: str

    @property
    def clocks(self) -> Timeouts: ...

    def environment(self, environ: Mapping[str, str]) -> dict[str, str]: ...

    def command(self, prompt: str, paper: Path, own: bool) -> SessionCommand: ...

    def ear(self, now: float, hear: Hear) -> SessionListener: ...


def _left_by_itself(ended: ProcessEnd) -> bool:
    """One that somebody killed was cut off, whoever it was."""
    return ended.by == "itself" and ended.exit_code is not None and ended.exit_code >= 0


class RawEar:
    """Line by line; Markdown means nothing."""

    def __init__(self, hear: Hear) -> None:
        self._reader = LineReader("raw")
        self._hear = hear

    def __call__(self, line: OutputLine) -> Iterable[Sight]:
        text = line.text.decode("utf-8", "replace")
        if line.half:
            self._reader.feed(text)
        elif not line.late:
            found = self._reader.feed(f"{text}\n")
            if found:
                self._hear(found)
        return (Alive(),)

    def close(self, ended: ProcessEnd) -> list[Found]:
        return self._reader.close(_left_by_itself(ended))

    def outcome(self, ended: ProcessEnd) -> SessionOutcome | None:
        return None


class ExecTongue:
    """Any command: the prompt on stdin, its stdout read line by line."""

    name = "exec"

    def __init__(self, argv: tuple[str, ...]) -> None:
        self._argv = argv

    @property
    def clocks(self) -> Timeouts:
        return Timeouts(grace=2.0)

    def environment(self, environ: Mapping[str, str]) -> dict[str, str]:
        return dict(environ)

    def command(self, prompt: str, paper: Path, own: bool) -> SessionCommand:
        return SessionCommand(self._argv, prompt.encode(errors="replace"))

    def ear(self, now: float, hear: Hear) -> SessionListener:
        return RawEar(hear)


class MessageEar(SessionMonitor):
    """An agent CLI: its own messages, as they come out of its stream."""

    def __init__(self, profile: Profile, now: float, zones: Zones, hear: Hear) -> None:
        super().__init__(profile, now, zones)
        self._lines = SessionLines()
        self._tell = hear

    def _take(self, event: StreamEvent) -> Iterator[Sight]:
        found = self._lines.take([event])
        if found:
            self._tell(found)
        yield from super()._take(event)

    def close(self, ended: ProcessEnd) -> list[Found]:
        if self._plain is not None:
            reader = LineReader("message")
            reader.feed(self._final())
            return reader.close(_left_by_itself(ended))
        return self._lines.close(self._reader.final_message is not None)

    def outcome(self, ended: ProcessEnd) -> SessionOutcome:
        usage = Usage(self.spent.tokens, self.spent.money)
        told = self.testimony(ended, usage)
        return judge(self._profile.outcome, self.facts(ended), told, "text")


class CliTongue:
    """An agent CLI by its profile. `bare` sends a prompt as it is, also one that is a command to
    the CLI: somebody has set it so."""

    def __init__(
        self,
        profile: Profile,
        settings: AgentSettings,
        program: str,
        zones: Zones,
        *,
        bare: bool = False,
    ) -> None:
        self.name = profile.name
        self._profile = msgspec.structs.replace(profile, guard=()) if bare else profile
        self._settings = settings
        self._program = program
        self._zones = zones

    @property
    def clocks(self) -> Timeouts:
        return clocks_of(self._profile, self._settings)

    def environment(self, environ: Mapping[str, str]) -> dict[str, str]:
        return environment(self._profile, self._settings, environ)

    def command(self, prompt: str, paper: Path, own: bool) -> SessionCommand:
        made = launch(
            *(self._profile, self._settings, self._program, prompt),
            paper=paper,
            own_folder=own,
            directories=self._settings.directories or (),
            language="text",
        )
        return SessionCommand(made.argv, made.stdin, made.prompt if made.prompt_file else "")

    def ear(self, now: float, hear: Hear) -> SessionListener:
        return MessageEar(self._profile, now, self._zones, hear)
