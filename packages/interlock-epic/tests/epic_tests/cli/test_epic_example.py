"""Test that the example does what its page says, command by command."""

import re
import shlex
import shutil
import sys

from tests.world.command_line import World
from tests.world.git_repo import GitRepo
from tests.world.places import ROOT

EXAMPLE = ROOT / "examples" / "epic"


def test_the_example_runs_as_its_page_says(world: World) -> None:
    page = (EXAMPLE / "README.md").read_text()
    blocks = re.findall(r"```\n(.*?)```", page, re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines()]
    for name in ("boats.md", "session.py"):
        shutil.copy(EXAMPLE / name, world.folder)
    repo = GitRepo(world.folder)
    repo.git("add", "boats.md", "session.py")
    repo.git("commit", "-q", "-m", "Begin")
    world.write("interlock.toml", '[epic]\nbackoff = "10ms"\n')

    codes = [(line, _typed(world, line)) for line in lines if not line.startswith("git init")]

    assert [code for _, code in codes] == [4, 0, 0, 1, 0, 0, 0], codes
    found = world.say("epic", "status", "--json").json
    assert found["outcome"] == "COMPLETE"
    assert found["checkpoint"]["stories"] == {"1-1": "done", "1-2": "done", "1-3": "done"}
    assert found["run_id"] == 2, "a fatal end is an end; what follows is another run"


def _typed(world: World, line: str) -> int:
    """Return the words of one shell line on the page."""
    words = shlex.split(line)
    if words[0] == "touch":
        world.write(words[1], "")
        return 0
    words = [word.replace("python3", sys.executable) for word in words]
    return world.say(*words[1:]).code
