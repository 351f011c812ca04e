"""Test sessions of agent CLIs with real processes, and which of their output counts."""

import hashlib
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from interlock.carriers.cli.carrier import AgentHome, make_nonce
from interlock.carriers.cli.ownership import WorkspaceOwner
from interlock.carriers.cli.profiles import AgentSettings, read_profile
from interlock.carriers.contract import Ask, Reply
from interlock.engine.case import Case
from interlock.system.clock import Clock, SystemClock
from interlock_epic.checkpoints.place import find_state_folder
from interlock_epic.checkpoints.store import Checkpoints
from interlock_epic.progress import CheckpointUpdater
from interlock_epic.sessions.carrier import SessionCarrier, SessionLimits, backoff_seconds
from interlock_epic.sessions.listen import AgentDialect, CliDialect, ExecDialect
from interlock_epic.sessions.record import SessionAttempt
from tests.world.carrier_bench import Bench, appears, gone
from tests.world.cli_agent import Act, FakeCli, say
from tests.world.crashes import boom, check_crash
from tests.world.streams import Claude

WRITE = "SAGE_SIGNAL:CHECKPOINT:WRITE:epic-3:3-1:p:1"
DONE = "SAGE_SIGNAL:EPIC_COMPLETE:epic-3:success"
FATAL = "SAGE_SIGNAL:FATAL_ERROR:SUBAGENT_FAILED:quoted"
QUICK = SessionLimits(session=20.0, idle=20.0, grace=0.2, backoff=2.0)


class Updater(CheckpointUpdater):
    """The real updater, which also records what it was given."""

    def __init__(self, folder: Path) -> None:
        super().__init__(Checkpoints(find_state_folder(folder)), "epic-3", time.time, print)
        self.attempts: list[SessionAttempt] = []

    def apply(self, ask: Ask, attempt: SessionAttempt) -> Mapping[str, Any]:
        self.attempts.append(attempt)
        return super().apply(ask, attempt)


def asked(dispatch_id: int = 1, **context: Any) -> Ask:
    case = Case("epic-3", "SESSION", context=context)
    return Ask(dispatch_id, 1, "epic-3", "SESSION", 1, "session", "go on", 1, 0.0, case)


def space_of(folder: Path) -> str:
    """Give each test its own workspace, since all share one folder of sockets."""
    return hashlib.sha256(os.fsencode(folder)).hexdigest()[:8]


def carrier(
    folder: Path,
    dialect: AgentDialect,
    updater: Updater | None = None,
    limits: SessionLimits = QUICK,
    clock: Clock | None = None,
) -> SessionCarrier:
    environ = {"PATH": os.environ["PATH"], "HOME": str(folder)}
    home = AgentHome(
        folder / "agents", folder, WorkspaceOwner(space_of(folder)), environ, make_nonce
    )
    return SessionCarrier(dialect, home, limits, clock or SystemClock(), updater or Updater(folder))


def claude(fake: FakeCli, name: str = "claude", *, bare: bool = False) -> CliDialect:
    settings = msgspec.convert({"clocks": {"grace": 0.3}}, AgentSettings)
    return CliDialect(
        read_profile(name), settings, str(fake.program), lambda _name: None, bare=bare
    )


async def one(agent: SessionCarrier) -> Reply:
    async with Bench(agent) as bench:
        bench.carrier.send([asked()])
        return (await bench.until(1))[0]


class BrokenUpdater(Updater):
    def apply(self, ask: Ask, attempt: SessionAttempt) -> Mapping[str, Any]:
        found: Mapping[str, Any] = boom()
        return found


async def test_an_unexpected_error_after_a_session_ends_its_dispatch(tmp_path: Path) -> None:
    agent = carrier(tmp_path, ExecDialect(("true",)), BrokenUpdater(tmp_path))
    await check_crash(agent, asked(), tmp_path)


def turn(*events: Any, last: str, **more: Any) -> list[Act]:
    return say(Claude.init(), *events, Claude.text_event(last), Claude.result(last, **more))


def quoted(tool: str) -> list[Any]:
    return [Claude.uses(tool), Claude.used(tool, f"{FATAL}\n{DONE}\n{WRITE}")]


SCENES: list[tuple[str, list[Act], str, str]] = [
    ("its last message", turn(last=f"All is done.\n\n{DONE}"), "EPIC_COMPLETE", "epic-3:success"),
    (
        "its result, where no message has it",
        say(Claude.init(), Claude.result(f"All is done.\n\n{DONE}")),
        "EPIC_COMPLETE",
        "epic-3:success",
    ),
    ("tool results", turn(*quoted("t"), last="I looked at it."), "NOTHING", ""),
    ("thinking", turn(Claude.thought(FATAL), last=DONE), "EPIC_COMPLETE", ""),
    (
        "sub-agents",
        turn(Claude.text_event(FATAL, parent_tool_use_id="t"), last=DONE),
        "EPIC_COMPLETE",
        "",
    ),
    ("fences", turn(last=f"```\n{FATAL}\n```\n{DONE}"), "EPIC_COMPLETE", ""),
    ("quotes", turn(last=f"> {DONE}"), "NOTHING", ""),
    (
        "a success that comes too early",
        say(
            Claude.init(),
            {
                **Claude.text_event(DONE),
                "message": {"id": "m1", "content": [{"type": "text", "text": DONE}]},
            },
            *quoted("t"),
            Claude.text_event("not quite"),
            Claude.result("not quite"),
        ),
        "NOTHING",
        "",
    ),
    ("a success whose run ends in an error", turn(last=DONE, is_error=True), "CRASH", ""),
    (
        "a checkpoint, and then more work",
        [
            *say(
                Claude.init(),
                {
                    **Claude.text_event(WRITE),
                    "message": {"id": "m1", "content": [{"type": "text", "text": WRITE}]},
                },
                *quoted("t"),
                Claude.text_event("and on"),
            ),
            ("hang", 1),
        ],
        "CHECKPOINT_WRITE",
        "epic-3:3-1:p:1",
    ),
    ("a crash", [*say(Claude.init()), ("err", "boom"), ("exit", 1)], "CRASH", ""),
    (
        "a slash command that is none",
        say(Claude.init(), Claude.result("Unknown command: /assistant", num_turns=0)),
        "NOTHING",
        "",
    ),
    (
        "half a line",
        [
            *say(Claude.init()),
            ("raw", json.dumps(Claude.text_event(DONE)).encode().hex()),
            ("kill", 9),
        ],
        "CRASH",
        "",
    ),
]


@pytest.mark.parametrize(
    ("scene", "ended", "message"), [row[1:] for row in SCENES], ids=[row[0] for row in SCENES]
)
async def test_only_the_agents_own_words_count(
    tmp_path: Path, scene: list[Act], ended: str, message: str
) -> None:
    updater, fake = Updater(tmp_path), FakeCli(tmp_path, scene)
    if ended == "CRASH":
        scene = [*scene, ("exit", 1)]
        (fake.place / "scenes.json").write_text(json.dumps([scene]))
    reply = await one(carrier(tmp_path, claude(fake), updater))

    assert msgspec.json.decode(reply.content)["ended_by"] == ended, updater.attempts
    assert not message or updater.attempts[0].message == message
    assert updater.attempts[0].before == "none"


async def test_codex_too_and_its_tools_are_no_voice_either(tmp_path: Path) -> None:
    tool = {
        "type": "command_execution",
        "id": "c",
        "command": "cat",
        "aggregated_output": FATAL,
        "exit_code": 0,
        "status": "completed",
    }
    events = [
        {"type": "thread.started", "thread_id": "t"},
        {"type": "turn.started"},
        {"type": "item.completed", "item": tool},
        {"type": "item.completed", "item": {"id": "a", "type": "agent_message", "text": DONE}},
        {"type": "turn.completed", "usage": {"input_tokens": 3, "output_tokens": 4}},
    ]
    updater, fake = Updater(tmp_path), FakeCli(tmp_path, say(*events))
    reply = await one(carrier(tmp_path, claude(fake, "codex"), updater))

    assert msgspec.json.decode(reply.content)["ended_by"] == "EPIC_COMPLETE"
    assert reply.usage.tokens == 7


async def test_a_rate_limit_is_a_pause_and_no_crash(tmp_path: Path) -> None:
    failed = Claude.failed("You've hit your session limit", "rate_limit", 429)
    scene = [*say(Claude.init(), Claude.limited("rejected", 2_000_000_000), *failed), ("exit", 1)]
    updater = Updater(tmp_path)
    reply = await one(carrier(tmp_path, claude(FakeCli(tmp_path, scene)), updater))

    assert (reply.failure, reply.until, updater.attempts) == ("rate-limit", 2_000_000_000, [])


async def test_a_session_knows_that_it_is_orchestrated_and_where_to_speak(tmp_path: Path) -> None:
    updater, fake = Updater(tmp_path), FakeCli(tmp_path, turn(last=DONE))
    await one(carrier(tmp_path, claude(fake), updater))
    called = fake.calls()[0]

    assert called["env"]["SAGE_ORCHESTRATOR"] == "1"
    assert called["env"]["INTERLOCK_TOKEN"]
    assert not Path(called["env"]["INTERLOCK_CHANNEL"]).parent.exists(), "it is cleared away"
    assert called["cwd"] == str(tmp_path)


async def test_a_slash_command_is_sent_as_one_only_where_somebody_set_it_so(tmp_path: Path) -> None:
    ask = msgspec.structs.replace(asked(), prompt="/assistant *resume")
    for bare in (True, False):
        folder = tmp_path / str(bare)
        folder.mkdir()
        fake = FakeCli(folder, turn(last=DONE))
        async with Bench(carrier(folder, claude(fake, bare=bare))) as bench:
            bench.carrier.send([ask])
            await bench.until(1)
        call = fake.calls()[0]
        sent = call["stdin"] or call["argv"][-1]
        assert sent.startswith("/assistant *resume") is bare


class Noting(SystemClock):
    """The real clock, which records how long it was asked to wait."""

    def __init__(self) -> None:
        super().__init__()
        self.pauses: list[float] = []

    def call_at(self, when: float, callback: Callable[[], None]) -> Callable[[], None]:
        self.pauses.append(round(when - self.now(), 2))
        return super().call_at(when, callback)


async def test_after_crashes_it_waits_before_it_starts(tmp_path: Path) -> None:
    dialect = ExecDialect((sys.executable, "-I", "-S", "-c", f"print({DONE!r})"))
    limits = msgspec.structs.replace(QUICK, backoff=0.04)
    for crashes, pauses in ((0, []), (2, [0.08])):
        clock, folder = Noting(), tmp_path / str(crashes)
        folder.mkdir()
        async with Bench(carrier(folder, dialect, limits=limits, clock=clock)) as bench:
            bench.carrier.send([asked(crashes=crashes)])
            await bench.until(1)
        assert [each for each in clock.pauses if each in (0.04, 0.08)] == pauses


@pytest.mark.parametrize(
    ("crashes", "pause"),
    [(-1, 0), (0, 0), (1, 2), (2, 4), (3, 8), (8, 256), (9, 300), (10**9, 300)],
)
def test_the_pause_doubles_up_to_five_minutes(crashes: int, pause: float) -> None:
    assert backoff_seconds(crashes, 2.0) == pause
    assert backoff_seconds(crashes, 0.0) == 0


async def test_one_that_is_not_needed_any_more_is_ended_with_its_tree(tmp_path: Path) -> None:
    fake = FakeCli(tmp_path, [("pid", 1), ("hang", 1)])
    async with Bench(carrier(tmp_path, claude(fake))) as bench:
        bench.carrier.send([asked()])
        pid = int(await appears(fake.place / "pid"))
    assert gone(pid)


async def test_a_command_that_cannot_be_started_is_told_in_a_sentence(tmp_path: Path) -> None:
    reply = await one(carrier(tmp_path, ExecDialect(("/nowhere/at-all",))))
    assert (reply.failure, reply.content) == ("crash", b"")
    assert "cannot be started" in reply.reason


@pytest.mark.parametrize("act", ["unlink(s); os.rmdir(d)", "link(__file__, d + '/more')"])
async def test_a_meeting_place_that_cannot_be_left_tidy_does_not_undo_the_last_word(
    tmp_path: Path, act: str
) -> None:
    script = tmp_path / "session.py"
    there = "s = os.environ['INTERLOCK_CHANNEL']\nd = os.path.dirname(s)\n"
    script.write_text(f"import os\n{there}os.{act}\nprint({DONE!r})\n")
    dialect = ExecDialect((sys.executable, "-I", "-S", str(script)))
    updater = Updater(tmp_path)
    reply = await one(carrier(tmp_path, dialect, updater))
    shutil.rmtree(
        Path(tempfile.gettempdir()) / f"interlock-{os.getuid()}-{space_of(tmp_path)}-1", True
    )
    assert (reply.failure, [life.ended_by for life in updater.attempts]) == ("", ["EPIC_COMPLETE"])
