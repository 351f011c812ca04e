"""Makes the shop a git repository of its own: python3 make_repository.py FOLDER."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
WHO = {
    "GIT_AUTHOR_NAME": "Ann",
    "GIT_AUTHOR_EMAIL": "ann@example.org",
    "GIT_COMMITTER_NAME": "Ann",
    "GIT_COMMITTER_EMAIL": "ann@example.org",
    "GIT_AUTHOR_DATE": "2026-01-02T03:04:05Z",
    "GIT_COMMITTER_DATE": "2026-01-02T03:04:05Z",
}


def make(folder: Path) -> None:
    """The shop's files, the plan, and one commit."""
    shutil.copytree(HERE / "shop", folder)
    shutil.copy(HERE / "plan.md", folder / "plan.md")
    for words in (
        ("init", "--quiet", "--initial-branch=main"),
        ("add", "--all"),
        ("commit", "--quiet", "--message=A till"),
    ):
        around = {**os.environ, **WHO}
        subprocess.run(["git", *words], cwd=folder, env=around, check=True)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    make(Path(sys.argv[1]))
