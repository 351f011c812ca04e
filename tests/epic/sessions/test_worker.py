"""Sessions on a worker's host: a new one for each ask, and what is told of it."""

import sys
import time
from pathlib import Path

import msgspec
import pytest
from tests.epic.sessions.test_carrier import DONE, QUICK, claude, space_of
from tests.world.carrier_bench import Bench
from tests.world.cli_agent import Act, FakeCli, say
from tests.world.git_repo import GitRepo
from tests.world.streams import Claude

from interlock.agents.carrier import Ask, ExecutionContext, Reply
from interlock.agents.cli.carrier import AgentHome, make_nonce
from interlock.agents.cli.ownership import WorkspaceOwner
from interlock.epic.application import build_dialect
from interlock.epic.checkpoints.record import Checkpoint, Epic, encode_checkpoint
from interlock.epic.sessions.listen import AgentDialect, ExecDialect
from interlock.epic.sessions.transfer import SessionParcel, SessionReport, check_checkpoint
from interlock.epic.sessions.worker import WorkerSessionCarrier
from interlock.system.clock import SystemClock
from interlock.system.errors import SourceError

HANDED = Checkpoint(generation=3, epic=Epic(id="epic-3"), note="before")
PARCEL = SessionParcel(checkpoint=encode_checkpoint(HANDED), limits=QUICK, base="1" * 40)
GROW = """
import time
from pathlib import Path
from interlock.epic.checkpoints.place import find_state_folder
from interlock.epic.checkpoints.store import Checkpoints
import msgspec
def grow(known):
    return msgspec.structs.replace(known, extra={"log": "x" * 600_000})
Checkpoints(find_state_folder(Path())).update("epic-3", grow, "now")
"""


async def ask_session(
    repo: GitRepo, dialect: AgentDialect, parcel: bytes = msgspec.json.encode(PARCEL)
) -> Reply:
    folder = repo.folder.parent
    owner = WorkspaceOwner(space_of(folder))
    home = AgentHome(folder / "agents", folder, owner, {"PATH": "/usr/bin:/bin"}, make_nonce)
    execution = ExecutionContext(folder=str(repo.folder), application="epic", parcel=parcel)
    ask = Ask(1, 1, "epic-3", "SESSION", 1, "session", "go on", 1, execution=execution)
    async with Bench(WorkerSessionCarrier(lambda _: dialect, home, SystemClock())) as bench:
        bench.carrier.send([ask])
        return (await bench.until(1))[0]


def read_report(reply: Reply) -> SessionReport:
    assert not reply.failure, reply.reason
    return msgspec.json.decode(reply.content, type=SessionReport)


def script(folder: Path, text: str) -> ExecDialect:
    path = folder / "agent.py"
    path.write_text(text)
    return ExecDialect((sys.executable, str(path)))


async def test_a_second_session_for_a_dispatch_does_not_believe_the_first(
    repo: GitRepo, tmp_path: Path
) -> None:
    once = script(tmp_path, f"open('asked', 'a').write('x'); print({DONE!r})")
    for count in (1, 2):
        report = read_report(await ask_session(repo, once))
        assert (report.attempt.ended_by, report.base) == ("EPIC_COMPLETE", PARCEL.base)
        assert (report.attempt.total, report.attempt.repeated) == (1, 0)
        assert check_checkpoint(HANDED, report.checkpoint) == HANDED
        assert (repo.folder / "asked").read_text() == "x" * count
    assert report.attempt.record.count(":") == 1, "it names its host"


@pytest.mark.parametrize("works", [False, True])
async def test_a_rate_limit_is_told_unless_there_is_work_to_keep(
    repo: GitRepo, tmp_path: Path, works: bool
) -> None:
    until = int(time.time()) + 3600
    work: list[Act] = [("run", ["/usr/bin/touch", "half.txt"])] if works else []
    limit = say(Claude.init(), Claude.limited("rejected", until))
    failed = say(*Claude.failed("You've hit your session limit", "rate_limit", 429))
    cli = FakeCli(tmp_path, [*work, *limit, *failed, ("exit", 0)])
    reply = await ask_session(repo, claude(cli))
    if works:
        attempt = read_report(reply).attempt
        assert (attempt.ended_by, attempt.signal) == ("CRASH", None)
        assert "limit" in attempt.message
    else:
        assert (reply.failure, reply.until) == ("rate-limit", until)


async def test_a_checkpoint_that_is_too_large_to_travel_says_so(
    repo: GitRepo, tmp_path: Path
) -> None:
    report = read_report(await ask_session(repo, script(tmp_path, GROW)))
    assert not report.checkpoint
    assert "600,000 can travel between hosts: shorten its notes" in report.problem


async def test_a_parcel_of_another_version_and_an_agent_that_has_no_sessions_are_refused(
    repo: GitRepo, tmp_path: Path
) -> None:
    reply = await ask_session(repo, script(tmp_path, ""), b"{}")
    assert (reply.failure, "use the same version" in reply.reason) == ("crash", True), reply
    with pytest.raises(SourceError, match="are run by exec:COMMAND"):
        build_dialect("script:answers.yaml", False)
