"""The inbox finds what waits and is not fooled by odd files; a claim has one living owner."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from interlock.signals.batch import build_manifest, encode_manifest, move_entry, move_manifest
from interlock.signals.signal_file import Artifact, SignalFile, encode_artifact, encode_signal
from interlock.system.errors import SourceError
from interlock.system.open_folder import OpenFolder
from interlock.testing.responder.inbox import SignalFinder, take_claim

AT = "2026-02-16T12:00:00Z"


def signal(folder: Path, dispatch_id: int) -> SignalFile:
    return SignalFile(
        status="waiting",
        dispatch_id=dispatch_id,
        case_id=f"C{dispatch_id}",
        step="F0_RECALL",
        prompt_path=str(folder / "prompt.md"),
        artifact_path=str(folder / "artifact.json"),
        timestamp=AT,
    )


class Place:
    """A workspace with two waiting signals, and a finder on it."""

    def __init__(self, workspace: Path) -> None:
        self.suite = workspace / ".asterisk" / "calibrate" / "1"
        self.said: list[str] = []
        for number in (2, 1):
            folder = self.suite / str(number)
            folder.mkdir(parents=True)
            (folder / "signal.json").write_bytes(encode_signal(signal(folder, number)))
        self.finder = SignalFinder([workspace / ".asterisk"], self.said.append)

    def found(self) -> list[int]:
        return [each.signal.dispatch_id for each in self.finder.find_waiting()]

    def list_in_manifest(self, prefix: str) -> None:
        signals = {f"C{number}": f"{prefix}{number}/signal.json" for number in (1, 2)}
        manifest = build_manifest(3, "triage", AT, "briefing.md", signals)
        (self.suite / "batch-manifest.json").write_bytes(encode_manifest(manifest))


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_finds_what_waits_oldest_first_again_and_again(place: Place) -> None:
    assert place.found() == [1, 2]
    assert place.found() == [1, 2]


def test_sees_every_change(place: Place) -> None:
    folder = place.suite / "1"
    for number in range(3, 30):
        (folder / "signal.json").write_bytes(encode_signal(signal(folder, number)))
        assert place.found() == [2, number]


def test_an_answered_signal_does_not_wait(place: Place) -> None:
    artifact = place.suite / "1" / "artifact.json"
    artifact.write_bytes(encode_artifact(Artifact(9, {})))
    assert place.found() == [1, 2]
    artifact.write_bytes(encode_artifact(Artifact(1, {})))
    assert place.found() == [2]


@pytest.mark.parametrize("content", [b"", b'{"status": "wai', b"[]", b'{"status": "waiting"}'])
def test_what_is_no_signal_is_left_alone(place: Place, content: bytes) -> None:
    (place.suite / "1" / "signal.json").write_bytes(content)
    assert place.found() == [2]


def test_symlinks_are_left_alone_and_told_once(place: Place) -> None:
    path = place.suite / "1" / "signal.json"
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")
    assert place.found() == [2]
    assert place.found() == [2]
    assert place.said == [f"skipped: {path} is a symlink"]


def test_one_signal_alone(place: Place) -> None:
    finder = SignalFinder([place.suite / "2" / "signal.json"], place.said.append)
    [waiting] = finder.find_waiting()
    assert (waiting.signal.dispatch_id, waiting.batch) == (2, None)


@pytest.mark.parametrize("prefix", [".asterisk/calibrate/1/", "", "calibrate/1/"])
def test_batch_of_a_signal(place: Place, prefix: str) -> None:
    place.list_in_manifest(prefix)
    for path in (place.suite, place.suite / "batch-manifest.json"):
        found = SignalFinder([path], place.said.append).find_waiting()
        assert [each.batch.entry.case_id for each in found if each.batch] == ["C1", "C2"]


def test_a_manifest_that_is_over_or_an_entry_that_is_settled_binds_nobody(place: Place) -> None:
    place.list_in_manifest("")
    path = place.suite / "batch-manifest.json"
    manifest = place.finder.find_waiting()[0].batch
    assert manifest is not None
    settled = move_entry(manifest.manifest, "C1", "done", AT)
    path.write_bytes(encode_manifest(settled))
    assert [each.batch is not None for each in place.finder.find_waiting()] == [False, True]
    path.write_bytes(encode_manifest(move_manifest(settled, "done", AT)))
    assert [each.batch for each in place.finder.find_waiting()] == [None, None]


def test_nothing_there_yet(tmp_path: Path) -> None:
    assert (
        SignalFinder([tmp_path / "none", tmp_path / "no" / "signal.json"], print).find_waiting()
        == []
    )


HOLD = """
import sys
from pathlib import Path
from interlock.testing.responder.inbox import take_claim
from interlock.system.open_folder import OpenFolder
claim = take_claim(OpenFolder(Path(sys.argv[1])), Path(sys.argv[1], "case", "signal.json"), "7")
print(claim is not None, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def tree(tmp_path: Path) -> OpenFolder:
    (tmp_path / "case").mkdir()
    return OpenFolder(tmp_path)


@pytest.fixture
def signal_path(tree: OpenFolder) -> Path:
    return tree.root / "case" / "signal.json"


def test_only_one_holds_it(tree: OpenFolder, signal_path: Path) -> None:
    first = take_claim(tree, signal_path, "7")
    assert first is not None
    assert take_claim(tree, signal_path, "7") is None
    assert take_claim(tree, signal_path, "8") is not None
    owner = json.loads(signal_path.with_name(".claim-7").read_text())
    assert owner["pid"] == os.getpid()
    assert signal_path.with_name(".claim-7").stat().st_mode & 0o777 == 0o600


def test_settled_is_gone_and_left_is_free(tree: OpenFolder, signal_path: Path) -> None:
    first = take_claim(tree, signal_path, "7")
    assert first is not None
    first.abandon()
    assert signal_path.with_name(".claim-7").exists()
    second = take_claim(tree, signal_path, "7", only_abandoned=True)
    assert second is not None
    second.release()
    assert not signal_path.with_name(".claim-7").exists()
    assert take_claim(tree, signal_path, "7", only_abandoned=True) is None


def test_a_killed_owner_holds_nothing(tree: OpenFolder, signal_path: Path) -> None:
    owner = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tree.root)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == "True\n"
        assert take_claim(tree, signal_path, "7") is None
        owner.kill()
        owner.wait(120)
        assert take_claim(tree, signal_path, "7") is not None


def test_a_symlinked_claim_is_refused(tree: OpenFolder, signal_path: Path, tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("mine")
    signal_path.with_name(".claim-7").symlink_to(tmp_path / "victim")
    with pytest.raises((OSError, SourceError)):
        take_claim(tree, signal_path, "7")
    assert (tmp_path / "victim").read_text() == "mine"
