"""Test the verbs of epic checkpoint, and every way they can fail."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from epic_tests.sayings import loaded
from interlock_epic.checkpoints.place import find_state_folder
from interlock_epic.checkpoints.store import Checkpoints
from interlock_epic.recovery.policy import Action
from interlock_epic.recovery.recover import recover
from interlock_epic.sessions.channel import Channel
from tests.world.command_line import CliResult, World
from tests.world.git_repo import GitRepo

WORDS = ("--epic", "epic-3", "--story", "3-1", "--phase", "phase-2", "--task", "5")
LINE = "SAGE_SIGNAL:CHECKPOINT:WRITE:epic-3:3-1:phase-2:5\n"


@pytest.fixture
def repo(world: World) -> GitRepo:
    made = GitRepo(world.folder)
    made.commit("one", {"a.txt": "one\n"})
    return made


def do(world: World, *words: str) -> CliResult:
    return world.say("epic", "checkpoint", *words)


def read_checkpoint(world: World, *words: str) -> Any:
    return do(world, "show", "--json", *words).json


def test_help(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    result = do(world, "--help")
    verbs = [line.split()[0] for line in result.out.partition("Commands:\n")[2].splitlines()]
    assert (result.code, verbs) == (0, ["show", "write", "clear", "restore-stash"])


def test_write_says_one_line_and_keeps_the_place(world: World, repo: GitRepo) -> None:
    result = do(world, "write", *WORDS, "--note", 'mind "this"', "--next", "retry: the tests")
    assert result == CliResult(0, LINE, "")
    found = read_checkpoint(world)
    assert (found["found"], found["epic_id"]) == (True, "epic-3")
    checkpoint = found["checkpoint"]
    assert checkpoint["git"]["commit"] == repo.git("rev-parse", "HEAD")
    assert checkpoint["note"] == 'mind "this"'
    assert checkpoint["next_action"] == {
        "type": "retry",
        "description": "the tests",
        "subagent": "",
    }
    head = repo.git("rev-parse", "--short=12", "HEAD")
    assert do(world, "show").out.splitlines()[1:] == [
        "  story 3-1, phase phase-2, task 5",
        f"  git main at {head}",
        "  next retry: the tests",
        '  note mind "this"',
        "STORY  STATUS       COMMIT",
        "3-1    in_progress",
    ]


def test_write_as_one_object(world: World, repo: GitRepo) -> None:
    found = do(world, "write", *WORDS, "--json").json
    assert found == {
        "line": LINE.strip(),
        "delivered": None,
        "epic_id": "epic-3",
        "generation": 1,
        "path": str(world.folder / ".sage/state/epic-3.json"),
        "notices": [],
    }


def test_write_without_a_repository(world: World) -> None:
    assert do(world, "write", *WORDS, "--next", "look at 3:4") == CliResult(0, LINE, "")
    found = read_checkpoint(world)["checkpoint"]
    assert found["git"] == {"commit": "", "branch": "", "dirt": "", "unborn": False}
    assert found["next_action"]["description"] == "look at 3:4"


@pytest.mark.parametrize(
    ("change", "code", "why"),
    [
        ({"--epic": "../x"}, 2, "'../x' is not an epic's id"),
        ({"--epic": ""}, 2, "CHECKPOINT:WRITE lacks epic_id"),
        ({"--epic": "{epic_id}"}, 2, "CHECKPOINT:WRITE lacks epic_id"),
        ({"--story": "a:b"}, 2, "only the last field may contain a colon"),
        ({"--story": "-x"}, 2, "stories[0].id is not an id"),
        ({"--task": "[task]"}, 2, "CHECKPOINT:WRITE lacks task"),
        ({"--task": "x\x01"}, 2, "a payload must not contain control characters"),
        ({"--status": "banana"}, 2, "'banana' is not a status"),
        ({"--note": "x" * 5000}, 2, "note has more than 4,000 characters"),
        ({"--note": "x\udc80"}, 2, "contains a lone surrogate"),
    ],
)
def test_what_cannot_be_written(
    world: World, repo: GitRepo, change: dict[str, str], code: int, why: str
) -> None:
    given = dict(zip(WORDS[::2], WORDS[1::2], strict=True)) | change
    result = do(world, "write", *(word for pair in given.items() for word in pair))
    assert (result.code, result.out) == (code, "")
    assert why in result.err
    assert not list(world.folder.glob(".sage/state/*.json"))


@pytest.mark.parametrize("name", ["--epic", "--story", "--phase", "--task"])
def test_all_four_fields_are_needed(world: World, name: str) -> None:
    at = WORDS.index(name)
    assert do(world, "write", *WORDS[:at], *WORDS[at + 2 :]).code == 2


def test_a_status_that_may_not_follow(world: World, repo: GitRepo) -> None:
    assert do(world, "write", *WORDS, "--status", "Completed").code == 0
    result = do(world, "write", *WORDS)
    output = "interlock: story 3-1 is done and cannot become in_progress; possible: nothing\n"
    assert result == CliResult(1, "", output)
    assert read_checkpoint(world)["checkpoint"]["generation"] == 1


def in_session(world: World, folder: Path, token: str) -> tuple[CliResult, list[tuple[str, str]]]:
    """Run the command as an agent's tool would, beside a listening supervisor."""
    received: list[tuple[str, str]] = []

    async def supervise() -> CliResult:
        channel = Channel(folder, "right", lambda *result: received.append(result))
        await channel.start()
        env = {**channel.environment(), "INTERLOCK_TOKEN": token}
        words = ("epic", "checkpoint", "write", *WORDS)
        try:
            return await asyncio.to_thread(world.type, *words, env=env)
        finally:
            await channel.close()

    return asyncio.run(supervise()), received


def test_delivers_inside_a_session(
    world: World, repo: GitRepo, tmp_path_factory: pytest.TempPathFactory
) -> None:
    result, received = in_session(world, tmp_path_factory.mktemp("c"), "right")
    assert result == CliResult(0, LINE, "")
    assert received == [("CHECKPOINT", "WRITE:epic-3:3-1:phase-2:5")]


def test_what_was_not_delivered_is_written_all_the_same(
    world: World, repo: GitRepo, tmp_path_factory: pytest.TempPathFactory
) -> None:
    result, received = in_session(world, tmp_path_factory.mktemp("c"), "wrong")
    output = "written and printed, but not delivered: the token is not this session's\n"
    assert result == CliResult(1, LINE, f"interlock: {output}")
    assert (received, read_checkpoint(world)["found"]) == ([], True)


def test_show_tells_missing_corrupt_invalid_and_newer_apart(world: World, repo: GitRepo) -> None:
    assert do(world, "show").err == (
        "interlock: MISSING (NO_CHECKPOINT): there is no checkpoint here\n"
    )
    path = world.write(".sage/state/epic-3.json", "{")
    kinds = []
    for text in ("{", '{"version": "1.0"}', '{"version": 7}'):
        path.write_text(text)
        result = do(world, "show", "--json")
        kinds.append((result.code, result.json["kind"], result.json["code"]))
    assert kinds == [
        (1, "CORRUPT", "CHECKPOINT_CORRUPT"),
        (1, "INVALID", "CHECKPOINT_CORRUPT"),
        (1, "VERSION", "CHECKPOINT_CORRUPT"),
    ]


def test_show_and_clear_take_the_epic_as_an_argument(world: World, repo: GitRepo) -> None:
    do(world, "write", *WORDS)
    do(world, "write", "--epic", "epic-4", *WORDS[2:])
    assert read_checkpoint(world, "epic-3")["epic_id"] == "epic-3"
    assert read_checkpoint(world, "--epic", "epic-3", "epic-3")["epic_id"] == "epic-3"
    two = do(world, "show", "epic-3", "--epic", "epic-4")
    assert (two.code, "epic-3 and --epic epic-4 are two epics" in two.err) == (2, True)
    assert do(world, "clear", "epic-3").code == 0
    assert (
        read_checkpoint(world, "epic-3")["found"],
        read_checkpoint(world, "epic-4")["found"],
    ) == (False, True)


def test_show_falls_back_and_says_so(world: World, repo: GitRepo) -> None:
    do(world, "write", *WORDS)
    do(world, "write", *WORDS)
    for folder in (".sage/state", ".git/interlock/epics"):
        world.write(f"{folder}/epic-3.json", '{"version": 2,')
    found = read_checkpoint(world)
    assert (found["fell_back"], found["checkpoint"]["generation"]) == (True, 1)
    result = do(world, "show")
    assert result.code == 0
    assert "epic-3.json is damaged: it is not valid JSON" in result.err
    assert result.err.endswith("epic-3.json.1 is used\n")


def test_several_epics_need_a_name_when_none_is_active(world: World, repo: GitRepo) -> None:
    do(world, "write", *WORDS)
    do(world, "write", "--epic", "epic-4", *WORDS[2:])
    assert read_checkpoint(world)["epic_id"] == "epic-4"
    assert read_checkpoint(world, "--epic", "epic-3")["epic_id"] == "epic-3"
    for path in world.folder.glob("**/active"):
        path.unlink()
    result = do(world, "show")
    assert result.code == 2
    assert "there are several epics: name one of epic-3, epic-4" in result.err


def test_clear_archives(world: World, repo: GitRepo) -> None:
    do(world, "write", *WORDS)
    result = do(world, "clear")
    assert result.code == 0
    assert result.out.startswith(f"archived as {world.folder}/.sage/state/archive/epic-3.")
    assert len(list(world.folder.glob(".sage/state/archive/*"))) == 1
    assert read_checkpoint(world)["kind"] == "MISSING"
    assert do(world, "clear") == CliResult(0, "there is no checkpoint to clear\n", "")


def test_clear_deletes_only_with_yes(world: World, repo: GitRepo) -> None:
    do(world, "write", *WORDS)
    result = do(world, "clear", "--delete")
    assert (result.code, read_checkpoint(world)["found"]) == (2, True)
    assert "add --yes" in result.err
    found = do(world, "clear", "--delete", "--yes", "--json").json
    assert (found["deleted"], len(found["files"])) == (True, 2)
    assert list(world.folder.glob(".sage/state/**/*.json")) == []


def test_a_stash_is_shown_kept_and_restored(world: World, repo: GitRepo) -> None:
    do(world, "write", *WORDS)
    none = do(world, "restore-stash")
    assert (none.code, none.out) == (1, "")
    assert "no such stash is recorded for epic-3: there is none" in none.err
    repo.write({"a.txt": "half\n"})
    kept = Checkpoints(find_state_folder(world.folder))
    outcome = recover(kept, loaded(kept), lambda _: None, "T")
    assert (outcome.action, (world.folder / "a.txt").read_text()) == (Action.STASH, "one\n")
    assert f"  recovery 1 stashed work: {outcome.stash[:12]}\n" in do(world, "show").out
    result = do(world, "restore-stash")
    output = f"restored recovery 1 ({outcome.stash[:12]}); the stash itself is kept\n"
    assert result == CliResult(0, output, "")
    assert (world.folder / "a.txt").read_text() == "half\n"


def test_clearing_names_what_was_set_aside(world: World, repo: GitRepo) -> None:
    do(world, "write", *WORDS)
    repo.write({"a.txt": "half\n"})
    kept = Checkpoints(find_state_folder(world.folder))
    stash = recover(kept, loaded(kept), lambda _: None, "T").stash
    assert f"git stash apply {stash}" in do(world, "clear").err


def test_nothing_to_restore_where_there_is_nothing(world: World) -> None:
    result = do(world, "restore-stash", "--json")
    assert (result.code, result.out) == (2, "")
