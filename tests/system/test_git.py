"""git is run for reading only, with an end; nothing in a repository or around it redirects it."""

from pathlib import Path

import pytest
from tests.world.git_repo import GitRepo

from interlock.rca.records import Repo
from interlock.rca.sources.git.repository import Repository
from interlock.system.errors import SourceError
from interlock.system.git import Git, environment, first_line


@pytest.fixture
def world(tmp_path: Path) -> GitRepo:
    made = GitRepo(tmp_path / "shop")
    made.commit("Begin", {"cart.py": "total = 1\n" * 1_000})
    made.commit("Go on", {"cart.py": "total = 2\n" * 1_000})
    return made


def test_output_is_bounded_and_says_that_it_was_cut(world: GitRepo) -> None:
    ran = Git(world.folder).run("show", "HEAD:cart.py", most=100)
    assert (len(ran.out), ran.cut, ran.fine) == (100, True, True)


def test_output_of_just_the_bound_is_whole_or_cut_but_never_more(world: GitRepo) -> None:
    assert len(Git(world.folder).run("show", "HEAD:cart.py", most=10_000).out) == 10_000


def test_patience_ends(world: GitRepo) -> None:
    with pytest.raises(SourceError, match="git log took longer than 0 s and was stopped"):
        Git(world.folder).run("log", patience=0.0)


def test_a_bad_end_of_a_stream_is_told_in_git_s_own_words(world: GitRepo) -> None:
    with pytest.raises(SourceError, match=r"git rev-list failed in .*: bad revision 'nothing'"):
        list(Git(world.folder).stream("rev-list", "nothing", "--"))


def test_a_stream_may_be_left_early(world: GitRepo) -> None:
    stream = Git(world.folder).stream("log", "-p")
    assert next(iter(stream))


def test_a_folder_that_is_gone_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"git cannot be run in .*gone"):
        Git(tmp_path / "gone").run("status")


def test_much_input_and_much_output_do_not_stop_each_other(world: GitRepo) -> None:
    head = world.git("rev-parse", "HEAD")
    ran = Git(world.folder).run("cat-file", "--batch-check", feed=f"{head}\n".encode() * 20_000)
    assert ran.out.count(b"\n") == 20_000


def test_the_surroundings_do_not_redirect_git() -> None:
    around = {"PATH": "/bin", "GIT_DIR": "/x", "GIT_EXTERNAL_DIFF": "/x", "HOME": "/root"}
    assert environment(around).keys() & around.keys() == {"PATH"}
    assert environment(around)["GIT_CONFIG_GLOBAL"] == "/dev/null"


def test_the_line_that_tells_most_of_a_complaint() -> None:
    assert first_line("warning: x\nfatal: it broke\nhint: y") == "it broke"
    assert first_line("") == "no reason was given"


def ask_everything(folder: Path, cache: Path) -> Repository:
    repository = Repository(Repo(name="shop", path=str(folder)), cache=cache)
    for commit in repository.commits_since(None):
        repository.change_of(commit)
        repository.on_branch(commit.hash)
    repository.blame_line("cart.py", 1)
    repository.files_named("cart.py")
    repository.entry("cart.py")
    assert repository.browse is None
    return repository


def test_programs_named_in_a_repository_s_settings_are_not_run(
    world: GitRepo, tmp_path: Path
) -> None:
    trap = tmp_path / "trap.sh"
    trap.write_text(f"#!/bin/sh\necho $0 $* >> {tmp_path}/sprung\ncat\n")
    trap.chmod(0o755)
    for name in ("core.fsmonitor", "core.pager", "diff.external", "gpg.program", "core.sshCommand"):
        world.git("config", name, str(trap))
    world.git("config", "log.showSignature", "true")
    world.git("config", "diff.trap.textconv", str(trap))
    world.git("config", "diff.trap.command", str(trap))
    world.git("config", "filter.trap.smudge", str(trap))
    world.git("config", "pager.log", str(trap))
    world.git("config", "protocol.file.allow", "always")
    (world.folder / ".git" / "info").mkdir(exist_ok=True)
    (world.folder / ".git" / "info" / "attributes").write_text("* diff=trap filter=trap\n")
    hooks = world.folder / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    for name in ("post-checkout", "reference-transaction", "pre-auto-gc"):
        (hooks / name).write_bytes(trap.read_bytes())
        (hooks / name).chmod(0o755)
    assert ask_everything(world.folder, tmp_path / "cache").readable
    assert not (tmp_path / "sprung").exists()


def test_nothing_is_written_to_the_repository(world: GitRepo, tmp_path: Path) -> None:
    def state() -> list[tuple[str, int, int]]:
        found = [(path, path.lstat()) for path in sorted(world.folder.rglob("*"))]
        return [(str(path), stat.st_mtime_ns, stat.st_size) for path, stat in found]

    before = state()
    ask_everything(world.folder, tmp_path / "cache")
    assert state() == before
