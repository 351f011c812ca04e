"""Every Python block of the pages about Python is run, with the files that the pages show.

A block whose paragraph names a file, at its start or end, is that file. The other Python blocks
of a page are one program. A page that shows a package has it installed first.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from tests.world.places import PYTHONPATH, ROOT

FILE = re.compile(r"`([\w./-]+\.\w+)`[:.]?$")
PIP = ("-m", "pip", "install", "--no-deps", "--no-build-isolation", "--no-index", "--quiet")


class Page:
    """What a page shows: files, and a program."""

    def __init__(self, path: Path) -> None:
        self.files: dict[str, str] = {}
        self.program = ""
        before = ""
        for token in MarkdownIt().parse(path.read_text(encoding="utf-8")):
            if token.type == "inline":
                before = token.content
            elif token.type == "fence":
                named = FILE.search(before)
                if named:
                    self.files[named[1]] = token.content
                elif token.info == "python":
                    self.program += token.content + "\n"
                before = ""

    def write(self, folder: Path) -> None:
        for name, text in self.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            if text.startswith("#!"):
                path.chmod(0o755)


def run(folder: Path, *words: str) -> None:
    path = [str(folder / "site"), PYTHONPATH, os.environ.get("PYTHONPATH", "")]
    found = subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stdout + found.stderr


@pytest.mark.parametrize("name", ["python.md", "extend.md"])
def test_what_the_page_shows_works(name: str, tmp_path: Path) -> None:
    page = Page(ROOT / "docs" / name)
    page.write(tmp_path)
    packages = [str(Path(each).parent) for each in page.files if each.endswith("/pyproject.toml")]
    for each in packages:
        run(tmp_path, *PIP, "--target", "site", f"./{each}")
    assert page.program
    run(tmp_path, "-W", "error", "-c", page.program)
    tests = [each for each in page.files if each.startswith("test_")]
    assert tests
    run(tmp_path, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests)


def test_the_readme_s_program_is_the_page_s() -> None:
    """It names agents that are not installed here, so it is only compared by its calls."""
    visible = Page(ROOT / "README.md").program
    compile(visible, "README.md", "exec")
    calls = {"project.start(", "run.events()", "project.inbox(", "project.answer(", "run.wait()"}
    assert {each for each in calls if each in visible} == calls
    assert {each for each in calls if each in Page(ROOT / "docs" / "python.md").program} == calls
