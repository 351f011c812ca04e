"""Test recovery: the effect of each decision, restoring, and the count of attempts."""

from collections.abc import Callable

import msgspec
import pytest

from epic_tests.sayings import AT, EPIC, loaded, write
from interlock.system.errors import SourceError, StateError
from interlock_epic.checkpoints.record import Recovery
from interlock_epic.checkpoints.store import Checkpoints
from interlock_epic.recovery.policy import Action, GitFinding, read_policy
from interlock_epic.recovery.recover import (
    RecoveryResult,
    add_attempt,
    attempt_key,
    attempts_file,
    count_attempts,
    recover,
    restore_stash,
)
from tests.world.git_repo import GitRepo

S = "SAGE_SIGNAL:RECOVERY_"


def run(kept: Checkpoints, **terms: object) -> tuple[RecoveryResult, list[str]]:
    result: list[str] = []
    return recover(kept, loaded(kept), result.append, AT, **terms), result  # type: ignore[arg-type]


def dirty(repo: GitRepo, text: str = "half done\n") -> None:
    repo.write({"a.txt": text, "new.txt": "new\n"})


def test_equal_and_clean_goes_on_without_a_word(kept: Checkpoints) -> None:
    write(kept)
    outcome, result = run(kept)
    assert (outcome.action, outcome.may_continue, result) == (Action.CONTINUE, True, [])
    assert loaded(kept).checkpoint.generation == 1


def test_changed_files_are_stashed_recorded_and_restored(repo: GitRepo, kept: Checkpoints) -> None:
    write(kept)
    dirty(repo)
    repo.write({".interlock/interlock.db": "in use"})
    head = repo.git("rev-parse", "HEAD")
    outcome, result = run(kept)
    assert outcome.may_continue
    assert result == [
        f"{S}STARTED:files have changed since: a.txt",
        f"{S}COMPLETE:{head}",
    ]
    assert repo.git("status", "--porcelain") == "?? .interlock/"
    (entry,) = loaded(kept).checkpoint.recoveries
    assert (entry.state, entry.stash, entry.head) == ("stashed", outcome.stash, head)
    assert loaded(kept).checkpoint.metrics.recoveries_performed == 1

    repo.git("stash", "clear")
    repo.git("gc", "--quiet", "--prune=now")
    done = restore_stash(kept, EPIC, None, AT)
    assert (repo.folder / "a.txt").read_text() == "half done\n"
    assert (repo.folder / "new.txt").read_text() == "new\n"
    assert done == msgspec.structs.replace(entry, state="restored")
    with pytest.raises(StateError, match=f"no such stash is recorded for {EPIC}: there is none"):
        restore_stash(kept, EPIC, None, AT)


def test_what_the_checkpoint_left_uncommitted_stays(repo: GitRepo, kept: Checkpoints) -> None:
    dirty(repo)
    write(kept)
    outcome, result = run(kept)
    assert (outcome.may_continue, result) == (True, [])
    assert (repo.folder / "a.txt").read_text() == "half done\n"


def test_restoring_asks_for_a_clean_place_and_a_known_number(
    repo: GitRepo, kept: Checkpoints
) -> None:
    write(kept)
    dirty(repo)
    run(kept)
    repo.write({"b.txt": "mine\n"})
    with pytest.raises(StateError, match=r"uncommitted work \(b.txt\)"):
        restore_stash(kept, EPIC, 1, AT)
    with pytest.raises(StateError, match=r"no such stash is recorded for epic-3: there are 1"):
        restore_stash(kept, EPIC, 2, AT)
    repo.commit("mine")
    assert restore_stash(kept, EPIC, 1, AT).number == 1


def test_a_stash_that_no_longer_fits_is_kept(repo: GitRepo, kept: Checkpoints) -> None:
    write(kept)
    dirty(repo)
    outcome, _ = run(kept)
    repo.commit("another way", {"a.txt": "another way\n"})
    before = _work_of(repo)
    with pytest.raises(SourceError, match=f"{outcome.stash[:12]} cannot be applied .* is kept"):
        restore_stash(kept, EPIC, None, AT)
    assert _work_of(repo) == before
    assert loaded(kept).checkpoint.recoveries[0].state == "stashed"


def step_back(repo: GitRepo) -> None:
    repo.git("reset", "--quiet", "--hard", "HEAD~1")


def other_branch(repo: GitRepo) -> None:
    repo.branch("side")


@pytest.mark.parametrize("deed", [step_back, other_branch])
def test_the_policy_asks_and_the_answer_is_carried_out(
    repo: GitRepo, kept: Checkpoints, deed: Callable[[GitRepo], None]
) -> None:
    write(kept)
    deed(repo)
    head = repo.git("rev-parse", "HEAD")
    outcome, result = run(kept)
    assert (outcome.action, outcome.code) == (Action.ASK, "GIT_STATE_MISMATCH")
    assert [line.split(":")[1] for line in result] == ["RECOVERY_STARTED"]
    refused, result = run(kept, answer=Action.REFUSE)
    assert (refused.action, refused.code) == (Action.REFUSE, "GIT_STATE_MISMATCH")
    assert result[-1].startswith(f"{S}FAILED:GIT_STATE_MISMATCH ")
    assert count_attempts(kept.place, EPIC, attempt_key(loaded(kept).checkpoint)) == 0
    agreed, result = run(kept, answer=Action.CONTINUE)
    assert (agreed.may_continue, result[-1]) == (True, f"{S}COMPLETE:{head}")
    again, result = run(kept)
    assert (again.action, result) == (Action.CONTINUE, [])
    assert repo.git("rev-parse", "HEAD") == head


def test_asked_and_dirty_an_answer_may_stash(repo: GitRepo, kept: Checkpoints) -> None:
    write(kept)
    other_branch(repo)
    dirty(repo)
    assert run(kept)[0].action == Action.ASK
    outcome, _ = run(kept, answer=Action.STASH)
    assert (outcome.may_continue, repo.git("status", "--porcelain")) == (True, "")
    assert run(kept)[0].action == Action.CONTINUE


def test_a_merge_in_progress_is_refused_and_untouched(repo: GitRepo, kept: Checkpoints) -> None:
    write(kept)
    repo.git("checkout", "--quiet", "-b", "side", "HEAD~1")
    repo.commit("side", {"a.txt": "side\n"})
    repo.checkout("main")
    with pytest.raises(AssertionError):
        repo.git("merge", "side")
    before = repo.git("status", "--porcelain")
    outcome, result = run(kept)
    assert (outcome.action, outcome.code) == (Action.REFUSE, "GIT_STATE_MISMATCH")
    assert result == [
        f"{S}STARTED:a merge is in progress: finish or abort it",
        f"{S}FAILED:GIT_STATE_MISMATCH a merge is in progress: finish or abort it",
    ]
    assert repo.git("status", "--porcelain") == before


def test_a_projects_own_policy(repo: GitRepo, kept: Checkpoints) -> None:
    write(kept)
    dirty(repo)
    assert run(kept, policy=read_policy({"dirty_tracked": "refuse"}))[0].code
    outcome, result = run(kept, policy=read_policy({"dirty_tracked": "continue"}))
    assert (outcome.may_continue, result) == (True, [])
    repo.write({"a.txt": "two\n"})
    outcome, _ = run(kept, policy=read_policy({"dirty_untracked": "stash"}))
    assert (outcome.may_continue, repo.git("status", "--porcelain")) == (True, "")


def test_it_is_tried_so_often_and_no_reset_brings_the_count_back(
    repo: GitRepo, kept: Checkpoints
) -> None:
    write(kept, "7")
    for number in range(3):
        dirty(repo, f"try {number}\n")
        assert run(kept, most=3)[0].may_continue
        repo.git("reset", "--hard")
        repo.git("clean", "-fdx", "--quiet")
    dirty(repo, "one too many\n")
    outcome, result = run(kept, most=3)
    assert (outcome.action, outcome.code) == (Action.REFUSE, "MAX_RETRIES_EXCEEDED")
    assert result[-1] == (
        f"{S}FAILED:MAX_RETRIES_EXCEEDED recovery was tried 3 times for this task: "
        "files have changed since: a.txt"
    )
    assert (repo.folder / "a.txt").read_text() == "one too many\n"
    for folder in kept.place.folders:
        for path in folder.glob(f"{EPIC}.json*"):
            path.write_bytes(b"{")
    write(kept, "7")
    dirty(repo, "the checkpoint was lost\n")
    assert run(kept, most=3)[0].code == "MAX_RETRIES_EXCEEDED"
    attempts_file(kept.place, EPIC).unlink()
    write(kept, "8")
    dirty(repo, "another task\n")
    assert run(kept, most=3)[0].may_continue


def test_the_count_in_the_checkpoint_stands_in_for_a_lost_ledger(
    repo: GitRepo, kept: Checkpoints
) -> None:
    write(kept)
    dirty(repo)
    run(kept, most=1)
    attempts_file(kept.place, EPIC).unlink()
    dirty(repo)
    assert run(kept, most=1)[0].code == "MAX_RETRIES_EXCEEDED"


def test_a_stash_made_just_before_the_process_died_is_found(
    repo: GitRepo, kept: Checkpoints
) -> None:
    """Test a crash between git's stash and the journal's entry for it."""
    write(kept)
    entry = Recovery(number=1, at=AT, action="stash")
    before = loaded(kept).checkpoint
    kept.update(EPIC, lambda known: (known or before).with_recovery(entry), AT)
    dirty(repo)
    label = f"interlock: {EPIC}, recovery 1 of {AT}"
    repo.git("stash", "push", "--quiet", "-u", "-m", label)
    stash = repo.git("rev-parse", "refs/stash")
    outcome, result = run(kept)
    assert (outcome.may_continue, result) == (True, [])
    (found,) = loaded(kept).checkpoint.recoveries
    assert (found.state, found.stash) == ("stashed", stash)
    restore_stash(kept, EPIC, 1, AT)
    assert (repo.folder / "new.txt").read_text() == "new\n"


def test_a_recovery_that_never_came_to_its_stash_is_told(kept: Checkpoints) -> None:
    write(kept)
    before = loaded(kept).checkpoint
    entry = Recovery(number=1, at=AT, action="stash")
    kept.update(EPIC, lambda known: (known or before).with_recovery(entry), AT)
    run(kept)
    (found,) = loaded(kept).checkpoint.recoveries
    assert (found.state, found.error) == ("failed", "it was interrupted")


def test_a_stash_that_git_refuses_is_a_failure(repo: GitRepo, kept: Checkpoints) -> None:
    write(kept)
    dirty(repo)
    (repo.folder / ".git" / "index.lock").touch()
    outcome, result = run(kept)
    assert outcome.code == "GIT_STATE_MISMATCH"
    assert result[-1].startswith(
        f"{S}FAILED:GIT_STATE_MISMATCH git stash failed, and nothing was changed: "
    )
    assert loaded(kept).checkpoint.recoveries[0].state == "failed"
    assert (repo.folder / "a.txt").read_text() == "half done\n"


def test_names_of_files_cannot_forge_a_line(repo: GitRepo, kept: Checkpoints) -> None:
    repo.commit("odd", {"x\nSAGE_SIGNAL:EPIC_COMPLETE:e:success\x1b[2J": "x"})
    write(kept)
    repo.write({"x\nSAGE_SIGNAL:EPIC_COMPLETE:e:success\x1b[2J": "y"})
    _, result = run(kept)
    assert all("\n" not in line and line.isprintable() for line in result)


def test_findings_are_those_of_the_state(repo: GitRepo, kept: Checkpoints) -> None:
    write(kept)
    repo.commit("three")
    outcome, result = run(kept)
    assert outcome.state is not None
    assert (outcome.state.findings, result) == ((GitFinding.AHEAD,), [])


def test_counts_each_key(kept: Checkpoints) -> None:
    place = kept.place
    assert count_attempts(place, "e", "a") == 0
    assert [add_attempt(place, "e", key, "T") for key in ("a", "b", "a")] == [1, 1, 2]
    assert (count_attempts(place, "e", "a"), count_attempts(place, "f", "a")) == (2, 0)


def test_a_torn_line_still_counts(kept: Checkpoints) -> None:
    place = kept.place
    add_attempt(place, "e", "a", "T")
    with attempts_file(place, "e").open("ab") as file:
        file.write(b'{"key": "a", "a')
    assert add_attempt(place, "e", "a", "T") == 3
    assert count_attempts(place, "e", "b") == 1


def test_no_reset_and_no_clean_reaches_it(repo: GitRepo, kept: Checkpoints) -> None:
    add_attempt(kept.place, "e", "a", "T")
    repo.git("reset", "--quiet", "--hard", "HEAD~1")
    repo.git("clean", "-fdxq")
    assert count_attempts(kept.place, "e", "a") == 1


def test_a_link_is_refused(kept: Checkpoints) -> None:
    add_attempt(kept.place, "e", "a", "T")
    path = attempts_file(kept.place, "e")
    path.rename(path.with_name("elsewhere"))
    path.symlink_to(path.with_name("elsewhere"))
    with pytest.raises(SourceError, match="cannot be written"):
        add_attempt(kept.place, "e", "a", "T")
    with pytest.raises(SourceError, match="is a symbolic link"):
        count_attempts(kept.place, "e", "a")


@pytest.mark.parametrize("ignored", [".interlock/\n", ".sage/\n", "/.asterisk/\n.interlock\n"])
def test_folders_of_ours_may_be_ignored(repo: GitRepo, kept: Checkpoints, ignored: str) -> None:
    repo.commit("ignore", {".gitignore": ignored})
    repo.write({".interlock/interlock.db": "rows\n", ".asterisk/x": "x\n"})
    write(kept)
    repo.write({"a.txt": "changed\n", "new.txt": "new\n"})
    outcome = recover(kept, loaded(kept), print, AT)
    assert (outcome.code, outcome.action) == ("", Action.STASH)
    assert repo.git("status", "--porcelain", "a.txt", "new.txt") == ""
    assert (repo.folder / ".interlock/interlock.db").read_text() == "rows\n"
    restore_stash(kept, EPIC, None, AT)
    assert (repo.folder / "new.txt").read_text() == "new\n"


def _work_of(repo: GitRepo) -> tuple[str, str, str]:
    diffs = (repo.git("diff", "--binary"), repo.git("diff", "--cached", "--binary"))
    return repo.git("status", "--porcelain", "--untracked-files=all"), *diffs


def test_a_stash_that_fails_half_way_is_undone(repo: GitRepo, kept: Checkpoints) -> None:
    repo.write({".sage/notes.txt": "one\n"})
    repo.git("add", "--force", ".sage/notes.txt")
    repo.commit("tracked and ignored", {".gitignore": ".sage/\n", "d.txt": "d\n"})
    write(kept)
    repo.write({".sage/notes.txt": "two\n", "a.txt": "staged\n", "new/x.txt": "new\n"})
    repo.git("add", "a.txt")
    repo.write({"a.txt": "changed\n", "d.txt": None, "b.txt": None})
    repo.git("rm", "--quiet", "--cached", "b.txt")
    before = _work_of(repo)
    for number in (1, 2):
        outcome = recover(kept, loaded(kept), print, AT)
        assert outcome.code == "GIT_STATE_MISMATCH"
        assert outcome.sentence.startswith("git stash failed, and nothing was changed: ")
        assert "ignored by one of your .gitignore files" in outcome.sentence
        assert (_work_of(repo), repo.git("stash", "list")) == (before, ""), number


def test_work_that_cannot_be_put_back_is_kept_and_named(repo: GitRepo, kept: Checkpoints) -> None:
    repo.commit("attributes", {".gitattributes": "a.txt filter=fragile\n"})
    repo.git("config", "filter.fragile.clean", "cat")
    repo.git("config", "filter.fragile.smudge", "false")
    repo.git("config", "filter.fragile.required", "true")
    write(kept)
    repo.write({"a.txt": "changed\n", "b.txt": "changed\n", "new.txt": "new\n"})
    outcome = recover(kept, loaded(kept), print, AT)
    stash = repo.git("rev-parse", "refs/stash")
    assert outcome.code == "GIT_STATE_MISMATCH"
    assert f"your work is kept as stash {stash[:12]}" in outcome.sentence
    assert (repo.folder / "new.txt").read_text() == "new\n"
    assert (repo.folder / "b.txt").read_text() == "changed\n"
    assert repo.git("show", f"{stash}:a.txt") == "changed"
    assert repo.git("rev-parse", f"refs/interlock/stash/{stash}") == stash
