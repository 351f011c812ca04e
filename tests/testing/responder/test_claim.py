"""A claim has one living owner; a dead owner's claim is free."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from interlock.system.errors import SourceError
from interlock.system.open_folder import OpenFolder
from interlock.testing.responder.inbox import take

HOLD = """
import sys
from pathlib import Path
from interlock.testing.responder.inbox import take
from interlock.system.open_folder import OpenFolder
claim = take(OpenFolder(Path(sys.argv[1])), Path(sys.argv[1], "case", "signal.json"), "7")
print(claim is not None, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def tree(tmp_path: Path) -> OpenFolder:
    (tmp_path / "case").mkdir()
    return OpenFolder(tmp_path)


@pytest.fixture
def signal(tree: OpenFolder) -> Path:
    return tree.root / "case" / "signal.json"


def test_only_one_holds_it(tree: OpenFolder, signal: Path) -> None:
    first = take(tree, signal, "7")
    assert first is not None
    assert take(tree, signal, "7") is None
    assert take(tree, signal, "8") is not None
    owner = json.loads(signal.with_name(".claim-7").read_text())
    assert owner["pid"] == os.getpid()
    assert signal.with_name(".claim-7").stat().st_mode & 0o777 == 0o600


def test_settled_is_gone_and_left_is_free(tree: OpenFolder, signal: Path) -> None:
    first = take(tree, signal, "7")
    assert first is not None
    first.leave()
    assert signal.with_name(".claim-7").exists()
    second = take(tree, signal, "7", only_abandoned=True)
    assert second is not None
    second.settle()
    assert not signal.with_name(".claim-7").exists()
    assert take(tree, signal, "7", only_abandoned=True) is None


def test_a_killed_owner_holds_nothing(tree: OpenFolder, signal: Path) -> None:
    owner = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tree.root)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == "True\n"
        assert take(tree, signal, "7") is None
        owner.kill()
        owner.wait(30)
        assert take(tree, signal, "7") is not None


def test_a_symlinked_claim_is_refused(tree: OpenFolder, signal: Path, tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("mine")
    signal.with_name(".claim-7").symlink_to(tmp_path / "victim")
    with pytest.raises((OSError, SourceError)):
        take(tree, signal, "7")
    assert (tmp_path / "victim").read_text() == "mine"
