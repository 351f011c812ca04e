"""Another user of the same machine answers: the folder of the database is shared with a group."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from kernel_tests.cli.test_inbox import RUN
from tests.world.command_line import APPROVED, World

NOBODY, GROUP = 65534, 54321
"""A user who owns nothing, and a group that nobody else is in."""
AS_OTHER = (
    "setpriv",
    f"--reuid={NOBODY}",
    f"--regid={GROUP}",
    "--clear-groups",
    "--inh-caps=-all",
    "--bounding-set=-all",
    "--",
)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_files_are_as_private_as_the_folder_they_are_in(world: World) -> None:
    world.write("crew.yaml", APPROVED)
    world.cases("one")
    world.db.parent.mkdir()
    world.db.parent.chmod(0o2770)
    assert world.say(*RUN).code == 4
    assert world.say("answer", "3", "approve").code == 0
    assert {mode(world.db), mode(world.db.with_name("interlock.db.lock"))} == {0o660}


def test_without_a_shared_folder_everything_is_for_its_owner_alone(world: World) -> None:
    world.write("crew.yaml", APPROVED)
    world.cases("one")
    assert world.say(*RUN).code == 4
    assert world.say("answer", "3", "approve").code == 0
    assert {mode(world.db), mode(world.db.with_name("interlock.db.lock"))} == {0o600}


@pytest.mark.skipif(os.getuid() != 0, reason="only root can be somebody else")
def test_somebody_else_answers(world: World) -> None:
    name = subprocess.run(
        [*AS_OTHER, sys.executable, "-c", "import pwd, os; print(pwd.getpwuid(os.getuid())[0])"],
        capture_output=True,
        text=True,
        check=False,
    ).stdout.strip()
    if not name:
        pytest.skip("the other user cannot run Python here")
    for folder in (world.folder, *world.folder.parents[:3]):
        folder.chmod(folder.stat().st_mode | 0o055)
    world.write("crew.yaml", APPROVED)
    world.write("interlock.toml", f"[inbox]\nanswerers = ['{name}']\n")
    world.cases("one", "two")
    world.db.parent.mkdir()
    os.chown(world.db.parent, 0, GROUP)
    world.db.parent.chmod(0o2770)
    assert world.say(*RUN).code == 4
    env = {"LOGNAME": name, "HOME": "/nonexistent"}
    result = world.type("answer", "5", "approve", before=AS_OTHER, env=env)
    assert (result.code, result.err) == (0, "")
    late = world.type("answer", "5", "reject", before=AS_OTHER, env=env)
    assert late.code == 1
    assert "is answered already by" in late.err
    done = world.say("resume")
    assert "1 published" in done.out
    assert f"came back by {name}: artifact" in world.say("explain", "one").out
    assert "refused (Stale): Question 5 is answered already" in world.say("explain", "one").out
    assert world.say("doctor", "--deep").code == 0
