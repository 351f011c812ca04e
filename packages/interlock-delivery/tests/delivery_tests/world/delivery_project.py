"""A world with a real repository, a plan in it, and workers that carry it out."""

import shutil
from pathlib import Path

from delivery_tests.world.delivery_world import plan, task
from tests.world.command_line import World
from tests.world.git_repo import git

AGENT = "exec:python3 workers.py"
IGNORED = "__pycache__/\nworkers.py\n"
TEST = """\
import unittest


class Of(unittest.TestCase):
    def test_nothing(self):
        self.assertTrue(True)
"""


def lay_out(folder: Path, *tasks: str) -> World:
    """`name` or `name>other` for a task that comes after another."""
    world = World(folder)
    shutil.copy(Path(__file__).with_name("workers.py"), folder / "workers.py")
    world.write(".gitignore", IGNORED)
    world.write("test_nothing.py", TEST)
    pairs = [each.partition(">") for each in tasks]
    texts = [task(name, after or "none") for name, _, after in pairs]
    world.write("plan.md", plan(*texts, command="python3 -m unittest -v"))
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "first")
    return world
