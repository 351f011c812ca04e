"""The carrier `file`: seed 000 to the letter, and whatever else may lie in the folder."""

import json
import os
import socket
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.world.clock import FakeClock
from tests.world.file_carrier_bench import Desk, again, ask_for, turn, wrapped

from interlock.agents.files.case_folder import MAX_ARTIFACT, DispatchFiles
from interlock.agents.files.file import FileCarrier
from interlock.system.folder_watch import Mode

MODES: tuple[Mode, ...] = ("inotify", "poll")
ARTIFACT = "work-result.json"


async def test_the_signal_is_the_seeds_to_the_byte(tmp_path: Path) -> None:
    async with Desk(tmp_path) as desk:
        desk.carrier.send([ask_for(1)])
        place = desk.place()
        assert (
            (place / "signal.json").read_text()
            == f"""\
{{
  "status": "waiting",
  "dispatch_id": 1,
  "case_id": "C7",
  "step": "work",
  "prompt_path": "{place}/prompt-work.md",
  "artifact_path": "{place}/work-result.json",
  "timestamp": "2026-02-16T12:00:00Z",
  "error": ""
}}
"""
        )
        told = (place / "prompt-work.md").read_text()
        assert told.startswith("Do it.\n\n## Where to write\n")
        assert f"    {place / 'work-result.json'}\n" in told
        assert told.endswith('    {"dispatch_id": 1, "data": ANSWER}\n')
        files = sorted(path.name for path in place.iterdir())
        assert files == ["prompt-work.md", "signal.json"]
        assert {stat.S_IMODE(path.stat().st_mode) for path in place.iterdir()} == {0o600}


@pytest.mark.parametrize("mode", MODES)
async def test_from_waiting_to_done(tmp_path: Path, mode: Mode) -> None:
    async with Desk(tmp_path, mode) as desk:
        desk.carrier.send([ask_for(1)])
        desk.answer(wrapped(1, {"match": True, "confidence": 0.950}))
        await desk.passes(0.25)
        assert desk.told() == ['{"match": true, "confidence": 0.95}']
        assert desk.status() == "processing"
        desk.carrier.settle(1)
        assert desk.signal() | {"status": "done", "error": ""} == desk.signal()


async def test_inotify_needs_no_time_to_pass(tmp_path: Path) -> None:
    async with Desk(tmp_path, "inotify") as desk:
        desk.carrier.send([ask_for(1), ask_for(2, case_no=8)])
        desk.answer(wrapped(2), case_no=8)
        await turn()
        assert [each.dispatch_id for each in desk.replies] == [2]
        assert desk.clock.time == FakeClock().time


async def test_tokens_are_bytes_over_four(tmp_path: Path) -> None:
    async with Desk(tmp_path) as desk:
        desk.carrier.send([again(ask_for(1), prompt="x" * 100)])
        desk.answer(wrapped(1, {"n": "y" * 40}))
        await desk.passes(0.25)
        assert desk.replies[0].usage.tokens == 25 + len('{"n": "' + "y" * 40 + '"}') // 4


async def test_what_was_settled_without_an_answer_says_why(tmp_path: Path) -> None:
    async with Desk(tmp_path) as desk:
        desk.carrier.send([ask_for(1)])
        desk.carrier.settle(1, "no answer in time")
        assert (desk.status(), desk.signal()["error"]) == ("error", "no answer in time")
        desk.carrier.send([ask_for(2, attempt=2)])
        assert (desk.status(), desk.signal()["error"]) == ("waiting", "")
        assert desk.signal()["prompt_path"].endswith("/prompt-work-loop-2.md")


Make = Callable[[Path], object]


def content(value: object) -> Make:
    raw = value if isinstance(value, bytes) else json.dumps(value).encode()
    return lambda path: path.write_bytes(raw)


def a_socket(path: Path) -> None:
    here = Path.cwd()
    os.chdir(path.parent)
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    finally:
        os.chdir(here)


def a_link(path: Path) -> None:
    other = path.with_name("elsewhere.json")
    other.write_text(json.dumps(wrapped(1)))
    path.symlink_to(other)


INVALID = [
    ("partial", content(b'{"dispatch_id": 1, "da'), "not valid JSON"),
    ("empty", content(b""), "it is empty"),
    ("huge", content(b" " * (MAX_ARTIFACT + 1)), f"more than {MAX_ARTIFACT:,} bytes"),
    ("binary", content(b"\x80\x00\xff\xfe"), "not UTF-8"),
    ("a list", content([1, {"n": 1}]), "a list, not an object"),
    ("null data", content({"dispatch_id": 1, "data": None}), "data is null"),
    ("no data", content({"dispatch_id": 1}), "no data"),
    ("data is a list", content({"dispatch_id": 1, "data": []}), "not an object"),
    ("a key twice", content(b'{"dispatch_id": 1, "data": {"n": 1, "n": 2}}'), "is written twice"),
    (
        "an id twice",
        content(b'{"dispatch_id": 2, "dispatch_id": 1, "data": {}}'),
        "is written twice",
    ),
    ("no number", content(b'{"dispatch_id": 1, "data": {"n": NaN}}'), "no JSON number"),
    (
        "half a letter",
        content(b'{"dispatch_id": 1, "data": {"n": "\\ud800"}}'),
        "half a surrogate pair",
    ),
    ("a deep pit", content(b'{"data":' + b"[" * 200_000), "nested deeper than"),
    ("markdown", content(b'```json\n{"dispatch_id": 1, "data": {}}\n```'), "not valid JSON"),
]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("make", "why"), [row[1:] for row in INVALID], ids=[r[0] for r in INVALID])
async def test_what_is_invalid_twice_fails(
    tmp_path: Path, mode: Mode, make: Make, why: str
) -> None:
    async with Desk(tmp_path, mode) as desk:
        desk.carrier.send([ask_for(1)])
        make(desk.place() / ARTIFACT)
        await desk.passes(0.25)
        assert desk.told() == []
        await desk.passes(3)
        (told,) = desk.told()
        assert told.startswith("failed unreadable: ")
        assert why in told
        desk.carrier.settle(1, desk.replies[0].reason)
        assert desk.signal()["error"] == desk.replies[0].reason


FOREIGN = [
    ("another id", content(wrapped(2)), "Stale", "belongs to dispatch 2"),
    ("an older id", content(wrapped(0)), "Stale", "belongs to dispatch 0"),
    ("no id", content({"data": {}}), "Stale", "no dispatch_id"),
    ("no wrapper", content({"match": True}), "Stale", "no dispatch_id"),
    ("a text", content(wrapped("1")), "Stale", "is a str, not an integer"),
    ("a float", content(wrapped(1.0)), "Stale", "is a float, not an integer"),
    ("a truth", content(wrapped(True)), "Stale", "is a bool, not an integer"),
    ("too big", content(wrapped(2**63)), "Stale", "64 bits"),
    ("another's null", content({"dispatch_id": 2, "data": None}), "Stale", "dispatch 2"),
    ("a link", a_link, "Malformed", "a symbolic link"),
    ("a dead link", lambda path: path.symlink_to("nowhere"), "Malformed", "a symbolic link"),
    ("a pipe", os.mkfifo, "Malformed", "a pipe"),
    ("a folder", Path.mkdir, "Malformed", "a folder"),
    ("a socket", a_socket, "Malformed", "a socket"),
]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("make", "reason", "why"), [row[1:] for row in FOREIGN], ids=[row[0] for row in FOREIGN]
)
async def test_what_is_not_ours_is_journaled_once_and_ignored(
    tmp_path: Path, mode: Mode, make: Make, reason: str, why: str
) -> None:
    async with Desk(tmp_path, mode) as desk:
        desk.carrier.send([ask_for(1)])
        make(desk.place() / ARTIFACT)
        await desk.passes(60)
        assert desk.told() == [f"refused {reason}"]
        assert why in desk.replies[0].reason
        assert desk.status() == "waiting"
        (desk.place() / ARTIFACT).rename(desk.place() / "moved")
        desk.answer(wrapped(1))
        await desk.passes(3)
        assert desk.told()[1:] == ['{"n": 1}']


async def test_each_content_is_journaled_but_not_without_end(tmp_path: Path) -> None:
    async with Desk(tmp_path) as desk:
        desk.carrier.send([ask_for(1)])
        for number in (2, 3, 2, 3):
            desk.answer(wrapped(number))
            await desk.passes(1)
        assert desk.told() == ["refused Stale"] * 2
        for number in range(4, 104):
            desk.answer(wrapped(number))
            await desk.passes(1)
        assert len(desk.replies) == 50


@pytest.mark.parametrize("mode", MODES)
async def test_a_slow_writer_is_waited_for(tmp_path: Path, mode: Mode) -> None:
    whole = json.dumps(wrapped(1, {"text": "x" * 100})).encode()
    async with Desk(tmp_path, mode) as desk:
        desk.carrier.send([ask_for(1)])
        with (desk.place() / ARTIFACT).open("wb", buffering=0) as file:
            for at in range(0, len(whole), 10):
                file.write(whole[at : at + 10])
                await desk.passes(0.75)
        await desk.passes(2)
        assert [each.failure for each in desk.replies] == [""]
        assert json.loads(desk.replies[0].content) == {"text": "x" * 100}


async def test_an_artifact_that_appears_and_vanishes(tmp_path: Path) -> None:
    async with Desk(tmp_path) as desk:
        desk.carrier.send([ask_for(1)])
        path = desk.answer(b"{")
        await desk.passes(0.5)
        path.unlink()
        await desk.passes(5)
        assert desk.told() == ["refused Missing"]
        desk.answer(wrapped(1))
        await desk.passes(1)
        assert desk.told() == ["refused Missing", '{"n": 1}']


async def test_an_artifact_nobody_may_read() -> None:
    """Root may read everything, so the carrier works as somebody else here."""
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o777)  # noqa: PTH101
        me = os.geteuid()
        if me == 0:
            os.seteuid(65534)
        try:
            async with Desk(Path(name)) as desk:
                desk.carrier.send([ask_for(1)])
                path = desk.answer(wrapped(1))
                path.chmod(0)
                await desk.passes(5)
                assert desk.told() == ["refused Malformed"]
                assert "cannot be opened: Permission denied" in desk.replies[0].reason
                path.chmod(0o600)
                await desk.passes(5)
                assert desk.told()[1:] == ['{"n": 1}']
        finally:
            os.seteuid(me)


@pytest.mark.parametrize("mode", MODES)
async def test_a_responder_that_gives_up(tmp_path: Path, mode: Mode) -> None:
    async with Desk(tmp_path, mode) as desk:
        desk.carrier.send([ask_for(1)])
        desk.answer(desk.signal() | {"status": "error", "error": "no quota"}, name="signal.json")
        await desk.passes(1.2)
        assert desk.told() == ["failed crash: no quota"]
        desk.carrier.settle(1, "no quota")
        assert desk.signal()["error"] == "no quota"


async def test_a_responder_that_gives_up_in_few_words(tmp_path: Path) -> None:
    async with Desk(tmp_path) as desk:
        desk.carrier.send([ask_for(1)])
        desk.answer({"status": "error", "dispatch_id": 1}, name="signal.json")
        await desk.passes(1.2)
        assert desk.told() == ["failed crash: the responder gave no reason"]


async def test_an_artifact_counts_more_than_a_later_error(tmp_path: Path) -> None:
    async with Desk(tmp_path) as desk:
        desk.carrier.send([ask_for(1)])
        desk.answer(wrapped(1))
        desk.answer({"status": "error", "dispatch_id": 1}, name="signal.json")
        await desk.passes(3)
        assert desk.told() == ['{"n": 1}']


async def test_a_responder_may_note_that_it_works(tmp_path: Path) -> None:
    async with Desk(tmp_path) as desk:
        desk.carrier.send([ask_for(1)])
        desk.answer(desk.signal() | {"status": "processing"}, name="signal.json")
        await desk.passes(5)
        assert (desk.told(), desk.status()) == ([], "processing")


NONSENSE = [
    ("no JSON", content(b"oops")),
    ("another dispatch", content({"status": "error", "dispatch_id": 9, "error": "forged"})),
    ("a truth for an id", content({"status": "error", "dispatch_id": True})),
    ("a list", content([1])),
    ("no fields", content({"dispatch_id": 1})),
    ("nothing", lambda _path: None),
    ("a link", a_link),
    ("a pipe", os.mkfifo),
    ("a folder", Path.mkdir),
    ("huge", content(b" " * 100_000)),
]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("make", [row[1] for row in NONSENSE], ids=[row[0] for row in NONSENSE])
async def test_a_signal_replaced_by_nonsense_is_written_again(
    tmp_path: Path, mode: Mode, make: Make
) -> None:
    async with Desk(tmp_path, mode) as desk:
        desk.carrier.send([ask_for(1)])
        before = desk.signal()
        (desk.place() / "signal.json").unlink()
        make(desk.place() / "signal.json")
        await desk.passes(5)
        assert desk.told() == ["refused Malformed"]
        assert desk.signal() == before
        assert not (desk.place() / "signal.json").is_symlink()


async def test_a_folder_that_was_removed_is_laid_out_again(tmp_path: Path) -> None:
    async with Desk(tmp_path) as desk:
        desk.carrier.send([ask_for(1)])
        desk.place().rename(tmp_path / "away")
        await desk.passes(2)
        assert desk.status() == "waiting"
        assert (desk.place() / "prompt-work.md").read_text().startswith("Do it.\n")


async def test_a_loop_never_reads_an_old_answer(tmp_path: Path) -> None:
    async with Desk(tmp_path) as desk:
        for attempt in (1, 2, 3):
            desk.carrier.send([ask_for(attempt, attempt=attempt)])
            await desk.passes(1)
            assert len(desk.replies) == attempt - 1
            desk.answer(wrapped(attempt, {"n": attempt}))
            await desk.passes(0.25)
            desk.carrier.settle(attempt)
        kept = sorted(path.name for path in desk.place().glob("work-result*"))
        assert kept == ["work-result.attempt-1.json", "work-result.attempt-2.json", ARTIFACT]
        first = json.loads((desk.place() / "work-result.attempt-1.json").read_bytes())
        assert first == wrapped(1, {"n": 1})


@pytest.mark.parametrize("mode", MODES)
async def test_an_artifact_written_meanwhile_is_taken_on_start(tmp_path: Path, mode: Mode) -> None:
    async with Desk(tmp_path, mode) as desk:
        desk.carrier.send([ask_for(1)])
        first = tmp_path / "first"
        first.hardlink_to(desk.place() / "signal.json")
    desk.answer(wrapped(1))
    async with Desk(tmp_path, mode) as desk:
        desk.carrier.send([ask_for(1)])
        assert desk.told() == ['{"n": 1}']
    async with Desk(tmp_path, mode) as desk:
        desk.answer(wrapped(9))
        desk.carrier.send([ask_for(1)])
        assert desk.status() == "waiting"
        assert not first.samefile(desk.place() / "signal.json"), "it was not written anew"


async def test_a_restart_leaves_a_good_signal_alone(tmp_path: Path) -> None:
    async with Desk(tmp_path) as desk:
        desk.carrier.send([ask_for(1)])
        before = (desk.place() / "signal.json").stat()
    async with Desk(tmp_path) as desk:
        desk.carrier.send([ask_for(1)])
        assert (desk.place() / "signal.json").stat() == before


async def test_an_error_written_meanwhile_is_heard_on_start(tmp_path: Path) -> None:
    async with Desk(tmp_path) as desk:
        desk.carrier.send([ask_for(1)])
    desk.answer(desk.signal() | {"status": "error", "error": "tired"}, name="signal.json")
    async with Desk(tmp_path) as desk:
        desk.carrier.send([ask_for(1)])
        assert desk.told() == ["failed crash: tired"]


async def test_a_lost_signal_does_not_lose_the_answer(tmp_path: Path) -> None:
    async with Desk(tmp_path) as desk:
        desk.carrier.send([ask_for(1)])
    desk.answer(wrapped(1))
    (desk.place() / "signal.json").write_text("oops")
    async with Desk(tmp_path) as desk:
        desk.carrier.send([ask_for(1)])
        assert desk.told() == ['{"n": 1}']


async def test_signals_of_dispatches_that_are_over_do_not_look_alive(tmp_path: Path) -> None:
    async with Desk(tmp_path) as desk:
        desk.carrier.send([ask_for(1), ask_for(2, case_no=8), ask_for(3, case_no=9)])
        desk.answer(wrapped(2), case_no=8)
        await desk.passes(0.5)
        assert desk.status(8) == "processing"
    async with Desk(tmp_path) as desk:
        desk.carrier.send([ask_for(3, case_no=9)])
        assert [desk.status(number) for number in (7, 8, 9)] == ["error", "done", "waiting"]


@pytest.mark.parametrize("above", ["1", "1/7"])
async def test_links_that_lead_out_of_the_root_are_refused(tmp_path: Path, above: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (tmp_path / "root" / above).parent.mkdir(parents=True)
    (tmp_path / "root" / above).symlink_to(outside)
    async with Desk(tmp_path / "root") as desk:
        desk.carrier.send([ask_for(1)])
        (told,) = desk.told()
        assert told.startswith("failed crash: the dispatch cannot be written")
        assert "symbolic links are refused" in told
        assert [*outside.iterdir()] == []


async def test_a_folder_swapped_for_a_link_is_not_followed(tmp_path: Path) -> None:
    async with Desk(tmp_path / "root") as desk:
        desk.carrier.send([ask_for(1)])
        outside = tmp_path / "outside"
        desk.place().rename(outside)
        (outside / ARTIFACT).write_text(json.dumps(wrapped(1)))
        desk.place().symlink_to(outside)
        await desk.passes(5)
        assert set(desk.told()) == {"refused Malformed"}
        desk.carrier.settle(1)
        assert json.loads((outside / "signal.json").read_bytes())["status"] == "waiting"


@pytest.mark.parametrize("name", ["../x.json", "a/b.json", "signal.json", "", ".x.json", "é.json"])
async def test_names_that_could_lead_elsewhere_are_refused(tmp_path: Path, name: str) -> None:
    def names(_step: str, _attempt: int) -> DispatchFiles:
        return DispatchFiles("prompt.md", name)

    async with Desk(tmp_path) as desk:
        desk.carrier = FileCarrier(tmp_path, desk.clock, names=names)
        desk.carrier.start(desk.replies.append)
        desk.carrier.send([ask_for(1)])
        assert "is not a safe file name" in desk.told()[0]


async def test_applications_bring_their_own_names(tmp_path: Path) -> None:
    def names(_step: str, attempt: int) -> DispatchFiles:
        return DispatchFiles(f"prompt-f3-loop-{attempt}.md", "artifact.json")

    async with Desk(tmp_path) as desk:
        desk.carrier = FileCarrier(tmp_path, desk.clock, names=names, mode="poll")
        desk.carrier.start(desk.replies.append)
        desk.carrier.send([again(ask_for(1), attempt=2)])
        assert desk.signal()["prompt_path"].endswith("/1/7/prompt-f3-loop-2.md")
        desk.answer(wrapped(1), name="artifact.json")
        await desk.passes(0.25)
        assert desk.told() == ['{"n": 1}']


async def test_a_root_that_cannot_be_written_fails_the_ask(tmp_path: Path) -> None:
    (tmp_path / "1").write_text("in the way")
    async with Desk(tmp_path) as desk:
        desk.carrier.send([ask_for(1)])
        assert desk.told()[0].startswith("failed crash: the dispatch cannot be written")
