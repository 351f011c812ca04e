"""The real Claude Code and the real Codex, as a test runs them: own home, own folder, our model.

Knows where `make e2e` put them, the environment that keeps them quiet and offline, and how their
events are read. Refuses to judge what they did: that is what the tests are for.
"""

import json
import os
import subprocess
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import msgspec
import psutil

from tests.world.models.server import Model
from tests.world.places import ROOT

INSTALLED = ROOT / "build" / "agents"
BIN = INSTALLED / "node_modules" / ".bin"
GIVE_UP = 180.0
MOMENT = 2.0
QUIET = {
    "DISABLE_TELEMETRY": "1",
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "IS_SANDBOX": "1",
}


class Ran(msgspec.Struct, frozen=True):
    """How a run of a CLI ended, and all it printed."""

    code: int
    events: list[dict[str, Any]]
    stderr: str
    seconds: float

    def of(self, *kinds: str) -> list[dict[str, Any]]:
        return [event for event in self.events if kind_of(event) in kinds]

    @property
    def kinds(self) -> list[str]:
        return [kind_of(event) for event in self.events]

    @property
    def last(self) -> dict[str, Any]:
        return self.events[-1]


class Cli:
    """One CLI in a folder of its own, with a model of ours behind it."""

    name = ""

    def __init__(self, folder: Path, model: Model) -> None:
        self.model = model
        self.home = folder / "home"
        self.work = folder / "work"
        for each in (self.home, self.work):
            each.mkdir(parents=True, exist_ok=True)

    def argv(self, prompt: str, flags: tuple[str, ...]) -> list[str]:
        raise NotImplementedError

    def env(self) -> dict[str, str]:
        """What every process of the CLI sees; also fit for a whole `interlock` around it."""
        return {
            "PATH": f"{BIN}:{os.environ['PATH']}",
            "HOME": str(self.home),
            "LANG": "C.UTF-8",
            **QUIET,
        }

    def start(
        self,
        prompt: str,
        *flags: str,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        stdin: bytes = b"",
    ) -> "Running":
        process = subprocess.Popen(
            self.argv(prompt, flags),
            cwd=cwd or self.work,
            env=self.env() | dict(env or {}),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        assert process.stdin is not None
        process.stdin.write(stdin)
        process.stdin.close()
        return Running(process)

    def run(
        self,
        prompt: str,
        *flags: str,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        stdin: bytes = b"",
    ) -> Ran:
        return self.start(prompt, *flags, env=env, cwd=cwd, stdin=stdin).finish()


class Running:
    """A CLI at work. What it prints is read as it comes: Claude Code loses what nobody reads."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self.process = process
        self._began = time.monotonic()
        self._out, self._err = _Pump(process.stdout), _Pump(process.stderr)

    def send(self, number: int) -> None:
        self.process.send_signal(number)

    def ended(self) -> int:
        """The exit code. What it left running may go on and hold its pipes open."""
        return self.process.wait(GIVE_UP)

    def finish(self) -> Ran:
        """All that it printed, to the end."""
        code = self.ended()
        out, err = self._out.all(), self._err.all()
        seconds = time.monotonic() - self._began
        return Ran(code, events_in(out), err.decode("utf-8", "replace"), seconds)

    def until_said(self, words: bytes) -> None:
        give_up = time.monotonic() + GIVE_UP
        while words not in self._out.so_far:
            assert time.monotonic() < give_up, f"it never said {words!r}"
            time.sleep(0.01)


class _Pump(threading.Thread):
    def __init__(self, pipe: IO[bytes] | None) -> None:
        super().__init__(daemon=True)
        assert pipe is not None
        self._pipe = pipe
        self.so_far = bytearray()
        self.start()

    def run(self) -> None:
        with self._pipe:
            while piece := os.read(self._pipe.fileno(), 1 << 16):
                self.so_far += piece

    def all(self) -> bytes:
        self.join(GIVE_UP)
        return bytes(self.so_far)


class Claude(Cli):
    """Claude Code, printing its events."""

    name = "claude"

    def env(self) -> dict[str, str]:
        keys = {"ANTHROPIC_BASE_URL": self.model.url, "ANTHROPIC_API_KEY": "dummy"}
        return super().env() | keys

    def argv(self, prompt: str, flags: tuple[str, ...]) -> list[str]:
        words = [str(BIN / "claude"), "-p", "--output-format", "stream-json", "--verbose", *flags]
        return [*words, "--", prompt] if prompt else words


class Codex(Cli):
    """Codex, printing its events."""

    name = "codex"
    resume = ""
    trusted = False
    """Whether the user trusts the work folder: only then its own settings are read."""

    def env(self) -> dict[str, str]:
        keys = {"CODEX_HOME": str(self.home / ".codex"), "OPENAI_API_KEY": "dummy"}
        (self.home / ".codex").mkdir(exist_ok=True)
        return super().env() | keys

    def settings(self) -> str:
        """The same as a config file, for runs whose command line is not ours."""
        trust = f'[projects."{self.work}"]\ntrust_level = "trusted"\n' if self.trusted else ""
        return (
            'model = "scripted"\n'
            'model_provider = "scripted"\n'
            "[analytics]\nenabled = false\n"
            "[features]\nplugins = false\n"
            "[model_providers.scripted]\n"
            f'name = "scripted"\nbase_url = "{self.model.url}/v1"\n'
            f'env_key = "OPENAI_API_KEY"\nwire_api = "responses"\n{trust}'
        )

    def argv(self, prompt: str, flags: tuple[str, ...]) -> list[str]:
        output = (*flags, "--json", "--skip-git-repo-check")
        again = ("resume", *output, self.resume) if self.resume else output
        return [str(BIN / "codex"), "exec", *again, prompt or "-"]

    def start(
        self,
        prompt: str,
        *flags: str,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        stdin: bytes = b"",
    ) -> Running:
        self.configure()
        return super().start(prompt, *flags, env=env, cwd=cwd, stdin=stdin)

    def configure(self, more: str = "") -> None:
        (self.home / ".codex").mkdir(exist_ok=True)
        (self.home / ".codex" / "config.toml").write_text(self.settings() + more)


def kind_of(event: dict[str, Any]) -> str:
    """`system/init`, `result/success`, `item.completed/agent_message`, `turn.completed`…"""
    inner = event.get("subtype") or event.get("item", {}).get("type")
    return f"{event['type']}/{inner}" if inner else str(event["type"])


def events_in(out: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.splitlines() if line.strip()]


def living(home: Path) -> list[psutil.Process]:
    """Every process that was started with this home, however far down and in whatever session."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("HOME") == str(home):
                found.append(process)
        except psutil.Error:
            continue
    return found


def left_behind(home: Path) -> list[str]:
    """What still runs after a moment; it is ended."""
    left = psutil.wait_procs(living(home), timeout=MOMENT)[1]
    output = [f"{process.pid} {' '.join(process.cmdline())}" for process in left if _runs(process)]
    for process in left:
        if _runs(process):
            process.kill()
    return output


def _runs(process: psutil.Process) -> bool:
    return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
