"""The carrier `batch-file`: manifest, briefing, budget, and a parent agent that edits along."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from interlock.carriers.contract import RunProgress
from interlock.carriers.files.batch import BatchCarrier
from interlock.carriers.files.file import FileCarrier
from interlock.runtime.application import Application
from interlock.signals.batch import Phase
from interlock.system.folder_watch import Mode
from tests.world.carrier_bench import Bench
from tests.world.clock import START, FakeClock
from tests.world.file_carrier_bench import ask_for, turn, wrapped


class Batches(Bench):
    """A batch carrier below a workspace."""

    carrier: BatchCarrier

    def __init__(
        self, workspace: Path, mode: Mode = "inotify", size: int = 4, tokens: int = 0
    ) -> None:
        clock = FakeClock()
        self.progress = RunProgress()
        self.folder = workspace / ".interlock" / "runs" / "1"
        self.carrier = BatchCarrier(
            FileCarrier(self.folder.parent, clock, mode=mode),
            clock,
            workspace=workspace,
            size=size,
            tokens=tokens,
        )
        super().__init__(self.carrier, clock)
        self.session = msgspec.structs.replace(
            self.session,
            circuit="demo",
            phase_of=phase_of,
            read_progress=lambda: self.progress,
        )

    def manifest(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.folder / "batch-manifest.json").read_bytes())
        return found

    def statuses(self) -> tuple[str, list[str]]:
        found = self.manifest()
        return found["status"], [one["status"] for one in found["signals"]]

    async def edit(self, status: str, entries: Sequence[str]) -> None:
        """What a parent agent does to the manifest."""
        found = self.manifest()
        for one, new in zip(found["signals"], entries, strict=True):
            one["status"] = new
        await self.write(json.dumps(found | {"status": status, "updated_at": "later"}))

    async def write(self, text: str) -> None:
        (self.folder / "batch-manifest.json").write_text(text)
        await self.rest()

    async def answer(self, dispatch_id: int, case_no: int) -> None:
        path = self.folder / f"{case_no}" / "work-result.json"
        path.write_text(json.dumps(wrapped(dispatch_id)))
        await self.rest()

    async def rest(self) -> None:
        await turn()
        self.clock.advance()
        await turn()


def phase_of(step: str) -> Phase:
    return "triage" if step == "work" else "investigation"


async def test_the_manifest_is_the_seeds_to_the_byte(tmp_path: Path) -> None:
    async with Batches(tmp_path) as batches:
        batches.carrier.send([ask_for(1, case_no=101), ask_for(2, case_no=102)])
        assert (
            (batches.folder / "batch-manifest.json").read_text()
            == """\
{
  "batch_id": 1,
  "status": "pending",
  "phase": "triage",
  "created_at": "1970-01-12T13:46:40Z",
  "updated_at": "1970-01-12T13:46:40Z",
  "total": 2,
  "briefing_path": ".interlock/runs/1/briefing.md",
  "signals": [
    {
      "case_id": "C101",
      "signal_path": ".interlock/runs/1/101/signal.json",
      "status": "pending"
    },
    {
      "case_id": "C102",
      "signal_path": ".interlock/runs/1/102/signal.json",
      "status": "pending"
    }
  ]
}
"""
        )
        for number in (101, 102):
            signal = json.loads((batches.folder / f"{number}" / "signal.json").read_bytes())
            assert signal["status"] == "waiting"
        assert not (batches.folder / "budget-status.json").exists()
        assert batches.clock.time == START


async def test_the_briefing_is_made_anew_for_each_batch(tmp_path: Path) -> None:
    async with Batches(tmp_path) as batches:
        batches.progress = RunProgress(cases=9, over=3)
        batches.carrier.send([ask_for(1)])
        assert (
            (batches.folder / "briefing.md")
            .read_text()
            .startswith("""\
# Calibration Briefing — Batch 1

## Run context
- Scenario: demo
- Suite ID: 1
- Phase: triage
- Cases in this batch: 1
- Total cases in run: 9
- Completed so far: 3

## Known symptoms (from prior batches)
none yet
""")
        )
        batches.carrier.settle(1)
        batches.progress = RunProgress(cases=9, over=4)
        batches.carrier.send([ask_for(2, step="look")])
        text = (batches.folder / "briefing.md").read_text()
        assert "Batch 2\n" in text
        assert "- Completed so far: 4\n" in text
        assert "## Cluster assignments" in text


async def test_a_mixed_batch_has_the_later_phase(tmp_path: Path) -> None:
    async with Batches(tmp_path) as batches:
        batches.carrier.send([ask_for(1), ask_for(2, case_no=8, step="look")])
        assert batches.manifest()["phase"] == "investigation"


@pytest.mark.parametrize("mode", ["inotify", "poll"])
@pytest.mark.parametrize("claims", [True, False])
async def test_artifacts_count_whether_or_not_they_are_claimed(
    tmp_path: Path, mode: Mode, claims: bool
) -> None:
    async with Batches(tmp_path, mode) as batches:
        batches.carrier.send([ask_for(1), ask_for(2, case_no=8)])
        if claims:
            await batches.edit("in_progress", ["claimed", "pending"])
        await batches.answer(1, 7)
        assert [each.dispatch_id for each in batches.replies] == [1]
        batches.carrier.settle(1)
        started = "in_progress" if claims else "pending"
        assert batches.statuses() == (started, ["done", "pending"])
        await batches.answer(2, 8)
        batches.carrier.settle(2)
        assert batches.statuses() == ("done", ["done", "done"])


@pytest.mark.parametrize(
    ("errors", "end"), [(("", "late"), "done"), (("late", "late"), "error"), (("", ""), "done")]
)
async def test_how_a_batch_ends(tmp_path: Path, errors: tuple[str, str], end: str) -> None:
    async with Batches(tmp_path) as batches:
        batches.carrier.send([ask_for(1), ask_for(2, case_no=8)])
        for dispatch_id, error in enumerate(errors, 1):
            batches.carrier.settle(dispatch_id, error)
        status, entries = batches.statuses()
        assert status == end
        assert entries == ["error" if error else "done" for error in errors]


async def test_one_batch_at_a_time_and_its_ids_rise(tmp_path: Path) -> None:
    async with Batches(tmp_path, size=3) as batches:
        assert batches.carrier.free_capacity("worker") == 3
        batches.carrier.send([ask_for(1), ask_for(2, case_no=8)])
        assert batches.carrier.free_capacity("worker") == 0
        batches.carrier.settle(1)
        assert batches.carrier.free_capacity("worker") == 0
        batches.carrier.settle(2, "late")
        assert batches.carrier.free_capacity("worker") == 3
        batches.carrier.send([ask_for(3, case_no=8, attempt=2)])
        assert batches.manifest()["batch_id"] == 2


@pytest.mark.parametrize(("used", "room"), [(0, 4), (80, 4), (81, 1), (99, 1), (100, 0), (130, 0)])
async def test_the_budget_makes_batches_small(tmp_path: Path, used: int, room: int) -> None:
    async with Batches(tmp_path, tokens=100) as batches:
        batches.progress = RunProgress(tokens=used)
        assert batches.carrier.free_capacity("worker") == room
        batches.carrier.send([ask_for(1)])
        budget = json.loads((batches.folder / "budget-status.json").read_bytes())
        assert budget == {
            "total_budget": 100,
            "used": used,
            "remaining": 100 - used,
            "percent_used": float(used),
        }


@pytest.mark.parametrize("mode", ["inotify", "poll"])
async def test_a_parent_that_gives_one_up_in_the_manifest(tmp_path: Path, mode: Mode) -> None:
    async with Batches(tmp_path, mode) as batches:
        batches.carrier.send([ask_for(1), ask_for(2, case_no=8)])
        await batches.answer(1, 7)
        await batches.edit("in_progress", ["error", "error"])
        for _ in range(6):
            await batches.rest()
        assert [(each.dispatch_id, each.failure) for each in batches.replies] == [
            (1, ""),
            (2, "crash"),
        ]
        batches.carrier.settle(1)
        batches.carrier.settle(2, "given up")
        assert batches.statuses() == ("done", ["done", "error"])


async def test_a_parent_that_writes_over_what_we_settled(tmp_path: Path) -> None:
    async with Batches(tmp_path) as batches:
        batches.carrier.send([ask_for(1), ask_for(2, case_no=8)])
        batches.carrier.settle(1)
        await batches.edit("in_progress", ["claimed", "claimed"])
        assert batches.statuses() == ("in_progress", ["done", "claimed"])
        batches.carrier.settle(2)
        await batches.edit("in_progress", ["done", "claimed"])
        assert batches.statuses() == ("done", ["done", "done"])


@pytest.mark.parametrize("text", ["oops", '{"batch_id": 1}', ""])
async def test_what_a_parent_noted_never_goes_back(tmp_path: Path, text: str) -> None:
    async with Batches(tmp_path) as batches:
        batches.carrier.send([ask_for(1), ask_for(2, case_no=8)])
        await batches.edit("in_progress", ["done", "claimed"])
        for _ in range(3):
            await batches.write(text)
        assert batches.statuses() == ("in_progress", ["done", "claimed"])
        await batches.edit("in_progress", ["claimed", "claimed"])
        assert batches.statuses() == ("in_progress", ["done", "claimed"])
        (batches.folder / "batch-manifest.json").write_text(text)
        batches.carrier.settle(2)
        assert batches.statuses() == ("in_progress", ["done", "done"])
        batches.carrier.settle(1, "unreadable")
        assert batches.statuses() == ("done", ["error", "done"])


async def test_what_a_parent_says_beyond_us_is_left_alone(tmp_path: Path) -> None:
    async with Batches(tmp_path) as batches:
        batches.carrier.send([ask_for(1), ask_for(2, case_no=8)])
        await batches.edit("done", ["done", "claimed"])
        assert batches.statuses() == ("done", ["done", "claimed"])
        assert batches.replies == []


@pytest.mark.parametrize("text", ["oops", "[]", '{"batch_id": 1}', ""])
async def test_a_manifest_replaced_by_nonsense_is_written_again(tmp_path: Path, text: str) -> None:
    async with Batches(tmp_path) as batches:
        batches.carrier.send([ask_for(1)])
        before = batches.manifest()
        await batches.write(text)
        assert batches.manifest() == before
        assert [each.refused for each in batches.replies] == ["Malformed"]


async def test_a_manifest_of_a_dead_process_is_archived(tmp_path: Path) -> None:
    async with Batches(tmp_path) as batches:
        batches.carrier.send([ask_for(1), ask_for(2, case_no=8)])
        await batches.edit("in_progress", ["claimed", "error"])
    async with Batches(tmp_path) as batches:
        batches.carrier.send([ask_for(1), ask_for(2, case_no=8)])
        assert batches.statuses() == ("pending", ["pending", "pending"])
        assert batches.manifest()["batch_id"] == 2
        assert batches.replies == []
        for dispatch_id in (1, 2):
            batches.carrier.settle(dispatch_id)
    async with Batches(tmp_path) as batches:
        batches.carrier.send([ask_for(3)])
        assert batches.manifest()["batch_id"] == 3
    kept = json.loads((batches.folder / "batch-manifest.stale-1.json").read_bytes())
    assert (kept["batch_id"], kept["status"]) == (1, "in_progress")
    (batches.folder / "batch-manifest.json").write_text("oops")
    async with Batches(tmp_path) as batches:
        batches.carrier.send([ask_for(3)])
        assert batches.manifest()["batch_id"] == 4
    names = sorted(path.name for path in batches.folder.glob("batch-manifest.stale-*"))
    assert names == ["batch-manifest.stale-0.json", "batch-manifest.stale-1.json"]


async def test_a_root_outside_the_workspace_is_shown_whole(tmp_path: Path) -> None:
    async with Batches(tmp_path) as batches:
        batches.carrier._workspace = tmp_path / "elsewhere"
        batches.carrier.send([ask_for(1)])
        assert batches.manifest()["briefing_path"] == str(batches.folder / "briefing.md")


async def test_a_folder_that_cannot_be_written_stops_nothing(tmp_path: Path) -> None:
    async with Batches(tmp_path) as batches:
        (batches.folder.parent).mkdir(parents=True, exist_ok=True)
        batches.folder.symlink_to(tmp_path)
        batches.carrier.send([ask_for(1)])
        assert [each.failure for each in batches.replies] == ["crash"]
        batches.carrier.settle(1, "crash")
        assert batches.carrier.free_capacity("worker") == 4


async def test_what_a_killed_process_was_about_to_rename_is_removed(tmp_path: Path) -> None:
    gone = 2**22 + 1  # no process has such a number
    batches = Batches(tmp_path)
    left = [
        batches.folder / f".batch-manifest.json.{gone}-3.new",
        batches.folder / "7" / f".signal.json.{gone}-4.new",
    ]
    for path in left:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("half")
    async with batches:
        batches.carrier.send([ask_for(1)])
    assert not any(path.exists() for path in left)
    assert not list(batches.folder.rglob("*.new"))


def test_a_circuit_of_ones_own_has_a_phase_of_the_seeds() -> None:
    assert Application("own").phase_of("draft") in ("triage", "investigation")
