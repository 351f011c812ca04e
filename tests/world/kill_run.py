"""A run that dies at a chosen moment, again and again, each time in a process of its own.

`python -m tests.world.kill_run FOLDER` works on FOLDER/whole.db undisturbed, then on a copy of the
begun run for every moment at which a process can die: before each statement that SQLite runs
(commits among them), and before each ask, each settling and each reply. Prints one line of JSON.
"""

import os
import shutil
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from interlock.carriers.contract import Ask, CarrierWrapper, Reply, Session
from interlock.carriers.script import ScriptAgent, read_script
from tests.world.sample_circuit import PAPER
from tests.world.world import World

SCRIPT = """\
"*":
  write: {answer: {words: 5}}
  judge: {answer: {mark: 4}}
  sign: {answer: {decision: approve}}
A:
  judge: {limited: 30s, answer: {mark: 4}}
B:
  write: [{crash: oh}, {answer: {words: 6}, twice: true}]
  judge: [{answer: {mark: 1}}, {forges: 99, answer: {mark: 5}}]
C:
  write: [{silent: true}, {raw: "?"}]
"""
CASES = ("A", "B", "C")
_MOST_DEATHS = 100


class Death:
    """Comes at the n-th moment; 0 is never."""

    def __init__(self, at: int = 0) -> None:
        self.moments = 0
        self._at = at

    def moment(self, *_: object) -> None:
        self.moments += 1
        if self.moments == self._at:
            os.kill(os.getpid(), signal.SIGKILL)


class Mortal(CarrierWrapper):
    """A carrier around the script agent: each thing it does is a moment to die at."""

    def __init__(self, world: World, death: Death) -> None:
        super().__init__(ScriptAgent(read_script(SCRIPT, "crew.yaml"), world.clock))
        self._death = death

    def start(self, session: Session) -> None:
        def mortally(reply: Reply) -> None:
            self._death.moment()
            session.deliver(reply)

        super().start(msgspec.structs.replace(session, deliver=mortally))

    def send(self, asks: Sequence[Ask]) -> None:
        self._death.moment()
        super().send(asks)

    def settle(self, dispatch_id: int, error: str = "") -> None:
        self._death.moment()
        super().settle(dispatch_id, error)


def work(folder: Path, death: Death) -> None:
    """One sitting, with death looking over its shoulder at every statement."""
    world = World(folder, PAPER)
    mortal = Mortal(world, death)
    world.work(
        carriers=dict.fromkeys(world.circuit.roles, mortal), places=2, statement=death.moment
    )


def in_a_process_of_its_own(job: Callable[[], None]) -> bool:
    """True if it came to its end, False if it was killed."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            job()
            code = 0
        finally:
            os._exit(code)
    status = os.waitpid(child, 0)[1]
    if os.WIFEXITED(status) and os.WEXITSTATUS(status):
        raise RuntimeError("the sitting failed")
    return os.WIFEXITED(status)


def verdict(folder: Path) -> tuple[str, list[str], int]:
    world = World(folder, PAPER)
    twice = world.rows("select count(*) - count(distinct dispatch_id) from journal")[0][0]
    return world.digest(), [fault.id for fault in world.faults()], int(str(twice))


def copied(started: Path, name: str) -> Path:
    folder = started.parent / name
    shutil.copytree(started, folder)
    return folder


def main(home: Path) -> None:
    started = home / "begun"
    started.mkdir()
    World(started, PAPER).begin(*CASES)
    whole = copied(started, "whole")
    life = Death()
    work(whole, life)
    expected = verdict(whole)
    wrong: list[str] = []
    for moment in range(1, life.moments + 1):
        folder = copied(started, str(moment))
        if in_a_process_of_its_own(lambda: work(folder, Death(moment))):  # noqa: B023
            wrong.append(f"{moment}: it did not die")
        in_a_process_of_its_own(lambda: work(folder, Death()))  # noqa: B023
        if verdict(folder) != expected:
            wrong.append(f"{moment}: {verdict(folder)}")
        shutil.rmtree(folder)
    deaths = 0
    often = copied(started, "often")
    # A start alone takes about forty statements: whoever dies earlier each time gets nowhere.
    while not in_a_process_of_its_own(lambda: work(often, Death(50 + deaths % 7))):  # noqa: B023
        deaths += 1
        if deaths == _MOST_DEATHS:
            raise RuntimeError("it dies before it gets anywhere: let it live longer")
    if verdict(often) != expected:
        wrong.append(f"after {deaths} deaths: {verdict(often)}")
    report = {"moments": life.moments, "deaths": deaths, "expected": expected, "wrong": wrong}
    sys.stdout.write(msgspec.json.encode(report).decode())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
