"""The tutorial, done literally: its files are saved, its commands run, its output compared."""

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.world.places import ROOT

PAGE = ROOT / "docs" / "tutorial.md"
BLOCK = re.compile(r"^(.*)\n\n?^```(\w*)\n((?:.*\n)*?)^```\n", re.MULTILINE)
TIME = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d")


def test_every_block_of_the_tutorial_works_as_it_says(tmp_path: Path) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    output, compared = "", 0
    for lead, language, text in BLOCK.findall(PAGE.read_text(encoding="utf-8")):
        saved = re.search(r"as `([\w./]+)`(?:, one JSON object per line)?:\s*$", lead)
        if saved is not None:
            file = tmp_path / saved[1]
            file.parent.mkdir(exist_ok=True)
            file.write_text(text, encoding="utf-8")
        elif language == "sh" and "not run" not in lead:
            done = subprocess.run(
                ["bash", "-c", text],
                cwd=tmp_path,
                env={**os.environ, "PATH": path},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
            )
            output = done.stdout
        elif not language:
            expected, found = (_normalize(each) for each in (text, output))
            assert [line for line in expected if line not in found] == [], output
            compared += 1
    assert compared == 6
    assert (tmp_path / "sent.txt").read_text() == "login is faster now, and uses less memory\n"


def _normalize(text: str) -> list[str]:
    """Lines without what differs from one run to the next."""
    return [TIME.sub("TIME", line) for line in text.splitlines()]
