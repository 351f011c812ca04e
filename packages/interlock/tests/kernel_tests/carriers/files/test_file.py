"""The carrier `file`: seed 000 to the letter, and whatever else may lie in the folder."""

import json
import os
import socket
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from interlock.carriers.files import DispatchFiles
from interlock.carriers.files.case_folder import MAX_ARTIFACT
from interlock.carriers.files.file import FileCarrier
from interlock.system.folder_watch import Mode
from tests.world.clock import FakeClock
from tests.world.file_carrier_bench import FileBench, again, ask_for, turn, wrapped

MODES: tuple[Mode, ...] = ("inotify", "poll")
ARTIFACT = "work-result.json"


async def test_the_signal_is_the_seeds_to_the_byte(tmp_path: Path) -> None:
    async with FileBench(tmp_path) as bench:
        bench.carrier.send([ask_for(1)])
        place = bench.place()
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
        output = (place / "prompt-work.md").read_text()
        assert output.startswith("Do it.\n\n## Where to write\n")
        assert f"    {place / 'work-result.json'}\n" in output
        assert output.endswith('    {"dispatch_id": 1, "data": ANSWER}\n')
        files = sorted(path.name for path in place.iterdir())
        assert files == ["prompt-work.md", "signal.json"]
        assert {stat.S_IMODE(path.stat().st_mode) for path in place.iterdir()} == {0o600}


@pytest.mark.parametrize("mode", MODES)
async def test_from_waiting_to_done(tmp_path: Path, mode: Mode) -> None:
    async with FileBench(tmp_path, mode) as bench:
        bench.carrier.send([ask_for(1)])
        bench.answer(wrapped(1, {"match": True, "confidence": 0.950}))
        await bench.passes(0.25)
        assert bench.describe_replies() == ['{"match": true, "confidence": 0.95}']
        assert bench.status() == "processing"
        bench.carrier.settle(1)
        assert bench.signal() | {"status": "done", "error": ""} == bench.signal()


async def test_inotify_needs_no_time_to_pass(tmp_path: Path) -> None:
    async with FileBench(tmp_path, "inotify") as bench:
        bench.carrier.send([ask_for(1), ask_for(2, case_no=8)])
        bench.answer(wrapped(2), case_no=8)
        await turn()
        assert [each.dispatch_id for each in bench.replies] == [2]
        assert bench.clock.time == FakeClock().time


async def test_tokens_are_bytes_over_four(tmp_path: Path) -> None:
    async with FileBench(tmp_path) as bench:
        bench.carrier.send([again(ask_for(1), prompt="x" * 100)])
        bench.answer(wrapped(1, {"n": "y" * 40}))
        await bench.passes(0.25)
        assert bench.replies[0].usage.tokens == 25 + len('{"n": "' + "y" * 40 + '"}') // 4


async def test_what_was_settled_without_an_answer_says_why(tmp_path: Path) -> None:
    async with FileBench(tmp_path) as bench:
        bench.carrier.send([ask_for(1)])
        bench.carrier.settle(1, "no answer in time")
        assert (bench.status(), bench.signal()["error"]) == ("error", "no answer in time")
        bench.carrier.send([ask_for(2, attempt=2)])
        assert (bench.status(), bench.signal()["error"]) == ("waiting", "")
        assert bench.signal()["prompt_path"].endswith("/prompt-work-loop-2.md")


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
    ("no number", content(b'{"dispatch_id": 1, "data": {"n": NaN}}'), "JSON number"),
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
    async with FileBench(tmp_path, mode) as bench:
        bench.carrier.send([ask_for(1)])
        make(bench.place() / ARTIFACT)
        await bench.passes(0.25)
        assert bench.describe_replies() == []
        await bench.passes(3)
        (output,) = bench.describe_replies()
        assert output.startswith("failed unreadable: ")
        assert why in output
        bench.carrier.settle(1, bench.replies[0].reason)
        assert bench.signal()["error"] == bench.replies[0].reason


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
    async with FileBench(tmp_path, mode) as bench:
        bench.carrier.send([ask_for(1)])
        make(bench.place() / ARTIFACT)
        await bench.passes(60)
        assert bench.describe_replies() == [f"refused {reason}"]
        assert why in bench.replies[0].reason
        assert bench.status() == "waiting"
        (bench.place() / ARTIFACT).rename(bench.place() / "moved")
        bench.answer(wrapped(1))
        await bench.passes(3)
        assert bench.describe_replies()[1:] == ['{"n": 1}']


async def test_each_content_is_journaled_but_not_without_end(tmp_path: Path) -> None:
    async with FileBench(tmp_path) as bench:
        bench.carrier.send([ask_for(1)])
        for number in (2, 3, 2, 3):
            bench.answer(wrapped(number))
            await bench.passes(1)
        assert bench.describe_replies() == ["refused Stale"] * 2
        for number in range(4, 104):
            bench.answer(wrapped(number))
            await bench.passes(1)
        assert len(bench.replies) == 50


@pytest.mark.parametrize("mode", MODES)
async def test_a_slow_writer_is_waited_for(tmp_path: Path, mode: Mode) -> None:
    whole = json.dumps(wrapped(1, {"text": "x" * 100})).encode()
    async with FileBench(tmp_path, mode) as bench:
        bench.carrier.send([ask_for(1)])
        with (bench.place() / ARTIFACT).open("wb", buffering=0) as file:
            for at in range(0, len(whole), 10):
                file.write(whole[at : at + 10])
                await bench.passes(0.75)
        await bench.passes(2)
        assert [each.failure for each in bench.replies] == [""]
        assert json.loads(bench.replies[0].content) == {"text": "x" * 100}


async def test_an_artifact_that_appears_and_vanishes(tmp_path: Path) -> None:
    async with FileBench(tmp_path) as bench:
        bench.carrier.send([ask_for(1)])
        path = bench.answer(b"{")
        await bench.passes(0.5)
        path.unlink()
        await bench.passes(5)
        assert bench.describe_replies() == ["refused Missing"]
        bench.answer(wrapped(1))
        await bench.passes(1)
        assert bench.describe_replies() == ["refused Missing", '{"n": 1}']


async def test_an_artifact_nobody_may_read() -> None:
    """Root may read everything, so the carrier works as somebody else here."""
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o777)  # noqa: PTH101
        me = os.geteuid()
        if me == 0:
            os.seteuid(65534)
        try:
            async with FileBench(Path(name)) as bench:
                bench.carrier.send([ask_for(1)])
                path = bench.answer(wrapped(1))
                path.chmod(0)
                await bench.passes(5)
                assert bench.describe_replies() == ["refused Malformed"]
                assert "cannot be opened: Permission denied" in bench.replies[0].reason
                path.chmod(0o600)
                await bench.passes(5)
                assert bench.describe_replies()[1:] == ['{"n": 1}']
        finally:
            os.seteuid(me)


@pytest.mark.parametrize("mode", MODES)
async def test_a_responder_that_gives_up(tmp_path: Path, mode: Mode) -> None:
    async with FileBench(tmp_path, mode) as bench:
        bench.carrier.send([ask_for(1)])
        bench.answer(bench.signal() | {"status": "error", "error": "no quota"}, name="signal.json")
        await bench.passes(1.2)
        assert bench.describe_replies() == ["failed crash: no quota"]
        bench.carrier.settle(1, "no quota")
        assert bench.signal()["error"] == "no quota"


async def test_a_responder_that_gives_up_in_few_words(tmp_path: Path) -> None:
    async with FileBench(tmp_path) as bench:
        bench.carrier.send([ask_for(1)])
        bench.answer({"status": "error", "dispatch_id": 1}, name="signal.json")
        await bench.passes(1.2)
        assert bench.describe_replies() == ["failed crash: the responder gave no reason"]


async def test_an_artifact_counts_more_than_a_later_error(tmp_path: Path) -> None:
    async with FileBench(tmp_path) as bench:
        bench.carrier.send([ask_for(1)])
        bench.answer(wrapped(1))
        bench.answer({"status": "error", "dispatch_id": 1}, name="signal.json")
        await bench.passes(3)
        assert bench.describe_replies() == ['{"n": 1}']


async def test_a_responder_may_note_that_it_works(tmp_path: Path) -> None:
    async with FileBench(tmp_path) as bench:
        bench.carrier.send([ask_for(1)])
        bench.answer(bench.signal() | {"status": "processing"}, name="signal.json")
        await bench.passes(5)
        assert (bench.describe_replies(), bench.status()) == ([], "processing")


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
    async with FileBench(tmp_path, mode) as bench:
        bench.carrier.send([ask_for(1)])
        before = bench.signal()
        (bench.place() / "signal.json").unlink()
        make(bench.place() / "signal.json")
        await bench.passes(5)
        assert bench.describe_replies() == ["refused Malformed"]
        assert bench.signal() == before
        assert not (bench.place() / "signal.json").is_symlink()


async def test_a_folder_that_was_removed_is_laid_out_again(tmp_path: Path) -> None:
    async with FileBench(tmp_path) as bench:
        bench.carrier.send([ask_for(1)])
        bench.place().rename(tmp_path / "away")
        await bench.passes(2)
        assert bench.status() == "waiting"
        assert (bench.place() / "prompt-work.md").read_text().startswith("Do it.\n")


async def test_a_loop_never_reads_an_old_answer(tmp_path: Path) -> None:
    async with FileBench(tmp_path) as bench:
        for attempt in (1, 2, 3):
            bench.carrier.send([ask_for(attempt, attempt=attempt)])
            await bench.passes(1)
            assert len(bench.replies) == attempt - 1
            bench.answer(wrapped(attempt, {"n": attempt}))
            await bench.passes(0.25)
            bench.carrier.settle(attempt)
        kept = sorted(path.name for path in bench.place().glob("work-result*"))
        assert kept == ["work-result.attempt-1.json", "work-result.attempt-2.json", ARTIFACT]
        first = json.loads((bench.place() / "work-result.attempt-1.json").read_bytes())
        assert first == wrapped(1, {"n": 1})


@pytest.mark.parametrize("mode", MODES)
async def test_an_artifact_written_meanwhile_is_taken_on_start(tmp_path: Path, mode: Mode) -> None:
    async with FileBench(tmp_path, mode) as bench:
        bench.carrier.send([ask_for(1)])
        first = tmp_path / "first"
        first.hardlink_to(bench.place() / "signal.json")
    bench.answer(wrapped(1))
    async with FileBench(tmp_path, mode) as bench:
        bench.carrier.send([ask_for(1)])
        assert bench.describe_replies() == ['{"n": 1}']
    async with FileBench(tmp_path, mode) as bench:
        bench.answer(wrapped(9))
        bench.carrier.send([ask_for(1)])
        assert bench.status() == "waiting"
        assert not first.samefile(bench.place() / "signal.json"), "it was not written anew"


async def test_a_restart_leaves_a_good_signal_alone(tmp_path: Path) -> None:
    async with FileBench(tmp_path) as bench:
        bench.carrier.send([ask_for(1)])
        before = (bench.place() / "signal.json").stat()
    async with FileBench(tmp_path) as bench:
        bench.carrier.send([ask_for(1)])
        assert (bench.place() / "signal.json").stat() == before


async def test_an_error_written_meanwhile_is_heard_on_start(tmp_path: Path) -> None:
    async with FileBench(tmp_path) as bench:
        bench.carrier.send([ask_for(1)])
    bench.answer(bench.signal() | {"status": "error", "error": "tired"}, name="signal.json")
    async with FileBench(tmp_path) as bench:
        bench.carrier.send([ask_for(1)])
        assert bench.describe_replies() == ["failed crash: tired"]


async def test_a_lost_signal_does_not_lose_the_answer(tmp_path: Path) -> None:
    async with FileBench(tmp_path) as bench:
        bench.carrier.send([ask_for(1)])
    bench.answer(wrapped(1))
    (bench.place() / "signal.json").write_text("oops")
    async with FileBench(tmp_path) as bench:
        bench.carrier.send([ask_for(1)])
        assert bench.describe_replies() == ['{"n": 1}']


async def test_signals_of_dispatches_that_are_over_do_not_look_alive(tmp_path: Path) -> None:
    async with FileBench(tmp_path) as bench:
        bench.carrier.send([ask_for(1), ask_for(2, case_no=8), ask_for(3, case_no=9)])
        bench.answer(wrapped(2), case_no=8)
        await bench.passes(0.5)
        assert bench.status(8) == "processing"
    async with FileBench(tmp_path) as bench:
        bench.carrier.send([ask_for(3, case_no=9)])
        assert [bench.status(number) for number in (7, 8, 9)] == ["error", "done", "waiting"]


@pytest.mark.parametrize("above", ["1", "1/7"])
async def test_links_that_lead_out_of_the_root_are_refused(tmp_path: Path, above: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (tmp_path / "root" / above).parent.mkdir(parents=True)
    (tmp_path / "root" / above).symlink_to(outside)
    async with FileBench(tmp_path / "root") as bench:
        bench.carrier.send([ask_for(1)])
        (output,) = bench.describe_replies()
        assert output.startswith("failed crash: the dispatch cannot be written")
        assert "symbolic links are refused" in output
        assert [*outside.iterdir()] == []


async def test_a_folder_swapped_for_a_link_is_not_followed(tmp_path: Path) -> None:
    async with FileBench(tmp_path / "root") as bench:
        bench.carrier.send([ask_for(1)])
        outside = tmp_path / "outside"
        bench.place().rename(outside)
        (outside / ARTIFACT).write_text(json.dumps(wrapped(1)))
        bench.place().symlink_to(outside)
        await bench.passes(5)
        assert set(bench.describe_replies()) == {"refused Malformed"}
        bench.carrier.settle(1)
        assert json.loads((outside / "signal.json").read_bytes())["status"] == "waiting"


@pytest.mark.parametrize("name", ["../x.json", "a/b.json", "signal.json", "", ".x.json", "é.json"])
async def test_names_that_could_lead_elsewhere_are_refused(tmp_path: Path, name: str) -> None:
    def names(_step: str, _attempt: int) -> DispatchFiles:
        return DispatchFiles("prompt.md", name)

    async with FileBench(tmp_path) as bench:
        bench.carrier = FileCarrier(tmp_path, bench.clock, names=names)
        bench.carrier.start(bench.session)
        bench.carrier.send([ask_for(1)])
        assert "is not a safe file name" in bench.describe_replies()[0]


async def test_applications_bring_their_own_names(tmp_path: Path) -> None:
    def names(_step: str, attempt: int) -> DispatchFiles:
        return DispatchFiles(f"prompt-f3-loop-{attempt}.md", "artifact.json")

    async with FileBench(tmp_path) as bench:
        bench.carrier = FileCarrier(tmp_path, bench.clock, names=names, mode="poll")
        bench.carrier.start(bench.session)
        bench.carrier.send([again(ask_for(1), attempt=2)])
        assert bench.signal()["prompt_path"].endswith("/1/7/prompt-f3-loop-2.md")
        bench.answer(wrapped(1), name="artifact.json")
        await bench.passes(0.25)
        assert bench.describe_replies() == ['{"n": 1}']


async def test_a_root_that_cannot_be_written_fails_the_ask(tmp_path: Path) -> None:
    (tmp_path / "1").write_text("in the way")
    async with FileBench(tmp_path) as bench:
        bench.carrier.send([ask_for(1)])
        assert bench.describe_replies()[0].startswith(
            "failed crash: the dispatch cannot be written"
        )
