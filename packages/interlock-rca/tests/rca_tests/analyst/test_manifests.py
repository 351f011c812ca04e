"""Dependencies and build files as suspects: what was changed, and what a failure misses."""

from pathlib import Path

import pytest

from interlock_rca.analyst.chances import CulpritLead
from interlock_rca.analyst.culprits import CommitRange, rank_commits
from interlock_rca.analyst.manifests import is_build_setting, is_manifest
from interlock_rca.records import Failure, Repo
from interlock_rca.sources.git.repository import Repository
from tests.world.git_repo import GitRepo

POM = "<dependency>\n  <artifactId>oarlock</artifactId>\n  <version>{}</version>\n</dependency>\n"
LOCK = '"packages": {{\n  "node_modules/oarlock": {{\n    "version": "{}"\n  }}\n}}\n'


@pytest.mark.parametrize(
    ("path", "before", "after", "message"),
    [
        (
            "requirements.txt",
            "oarlock==1.2\n",
            "",
            "ModuleNotFoundError: No module named 'oarlock'",
        ),
        (
            "pyproject.toml",
            'dependencies = [\n  "oarlock>=1.2",\n]\n',
            'dependencies = [\n  "oarlock>=2.0",\n]\n',
            "ImportError: cannot import name 'row' from 'oarlock.row'",
        ),
        (
            "package.json",
            '{"dependencies": {\n  "oarlock": "^1.2.0"\n}}\n',
            '{"dependencies": {\n  "paddle": "^1.2.0"\n}}\n',
            "Error: Cannot find module 'oarlock'",
        ),
        (
            "package-lock.json",
            LOCK.format("1.2.0"),
            LOCK.format("2.0.0"),
            "TypeError: row is not a function",
        ),
        (
            "go.mod",
            "module boat\n\nrequire example.org/oarlock v1.2.0\n",
            "module boat\n",
            "no required module provides package example.org/oarlock; to add it:",
        ),
        (
            "app/pom.xml",
            "<dependency><artifactId>oarlock</artifactId><version>1.2</version></dependency>\n",
            "<dependency><artifactId>oarlock</artifactId><version>2.0</version></dependency>\n",
            "java.lang.NoClassDefFoundError: org/oarlock/Row",
        ),
        ("pom.xml", POM.format("1.2"), POM.format("2.0"), "package org.oarlock does not exist"),
        (
            "build.gradle",
            "implementation 'org.oar:oarlock:1.2'\n",
            "implementation 'org.oar:oarlock:2.0'\n",
            "java.lang.NoClassDefFoundError: org/oar/oarlock/Row",
        ),
    ],
)
def test_a_changed_dependency_that_is_missed_is_suspected(
    tmp_path: Path, path: str, before: str, after: str, message: str
) -> None:
    git = GitRepo(tmp_path / "boat")
    sail = "def reef(sail):\n    return sail / 2\n"
    test = "from rig.sail import reef\n\n\ndef test_reef():\n    assert reef(4) == 2\n"
    green = git.commit("Build", {path: before, "rig/sail.py": sail, "tests/test_row.py": test})
    git.commit("Trim", {"hull/keel.py": "DEPTH = 3\n"})
    planted = git.commit("Update", {path: after})
    git.commit("Trim more", {"hull/keel.py": "DEPTH = 4\n"})
    stack = "at row (/boat/node_modules/oarlock/index.js:3:9)" if "function" in message else ""
    failure = Failure(id="a", test_name="test_row", message=message, stack=stack)
    repository = Repository(Repo(name="boat", path=str(git.folder)))
    first = rank_commits(failure, [CommitRange(repository, repository.list_commits_since(green))])[
        0
    ]
    assert first.commit.hash == planted
    assert first.clues["dependency"] >= 0.8
    assert any("oarlock" in why and path in why for why in first.why)


def test_a_hostile_version_is_read_in_no_time(tmp_path: Path) -> None:
    """A checksum of a lock file looks like a version for long, and then is none."""
    git = GitRepo(tmp_path / "boat")
    green = git.commit("Build", {"go.sum": "oarlock v1.2.0 h1:a\n"})
    git.commit("Update", {"go.sum": f"oarlock v1.{'2a.' * 120}! h1:{'4.4' * 120}=\n"})
    failure = Failure(id="a", test_name="test_row", message="no oarlock")
    repository = Repository(Repo(name="boat", path=str(git.folder)))
    assert (
        len(rank_commits(failure, [CommitRange(repository, repository.list_commits_since(green))]))
        == 1
    )


def test_what_a_build_names_is_suspected_though_it_is_no_code(tmp_path: Path) -> None:
    git = GitRepo(tmp_path / "boat")
    green = git.commit("Build", {"Makefile": "all:\n\ttrue\n", "rig/sail.py": "A = 1\n"})
    git.commit("Trim", {"rig/sail.py": "A = 2\n"})
    planted = git.commit("Pack", {"Makefile": "all:\n\ttar -c hold\n"})
    failure = Failure(id="a", test_name="boat", message="make: *** [Makefile:2: all] Error 2")
    repository = Repository(Repo(name="boat", path=str(git.folder)))
    first = rank_commits(failure, [CommitRange(repository, repository.list_commits_since(green))])[
        0
    ]
    assert first.commit.hash == planted
    assert first.why[0].startswith("it changed Makefile, which is named by the failure")
    assert first.is_named


def test_a_moved_submodule_is_suspected_with_the_commits_behind_it(tmp_path: Path) -> None:
    mast = GitRepo(tmp_path / "mast")
    old = mast.commit("Build the mast", {"winch.py": "def wind():\n    return 1\n"})
    new = mast.commit("Wind faster", {"winch.py": "def wind():\n    return 2\n"})
    boat = GitRepo(tmp_path / "boat")
    boat.commit("Build the boat", {"rig/sail.py": "A = 1\n", ".gitmodules": ""})
    boat.git("update-index", "--add", "--cacheinfo", f"160000,{old},lib/mast")
    boat.git("commit", "-qm", "Take a mast")
    green = boat.git("rev-parse", "HEAD").strip()
    boat.git("update-index", "--cacheinfo", f"160000,{new},lib/mast")
    boat.git("commit", "-qm", "Update the mast")
    planted = boat.git("rev-parse", "HEAD").strip()
    boat.git("update-index", "--cacheinfo", f"160000,{new},lib/mast")
    (boat.folder / "rig/sail.py").write_text("A = 2\n")
    boat.git("commit", "-qm", "Trim", "--", "rig/sail.py")
    stack = 'File "/ci/boat/lib/mast/winch.py", line 2, in wind\n'
    failure = Failure(id="a", test_name="test_wind", message="wound 2 times", stack=stack)

    def find_first() -> CulpritLead:
        repository = Repository(Repo(name="boat", path=str(boat.folder)))
        return rank_commits(
            failure, [CommitRange(repository, repository.list_commits_since(green))]
        )[0]

    absent = find_first()
    assert absent.commit.hash == planted
    told = f"it moved the submodule lib/mast from {old[:10]} to {new[:10]}"
    assert absent.why[0] == f"{told}, and the stack leads into it"
    mast.clone(boat.folder / "lib/mast")
    why = f"{told} (1 commit, the newest 'Wind faster'), and the stack leads into it"
    assert find_first().why[0] == why


def test_files_are_told_apart_by_their_names() -> None:
    for path in ("requirements/dev.txt", "sub/go.sum", "app/Cargo.toml", "a/b.csproj", "yarn.lock"):
        assert is_manifest(path), path
    for path in ("Dockerfile.ci", ".github/workflows/ci.yml", ".gitlab-ci.yml", ".nvmrc"):
        assert is_build_setting(path), path
    for path in ("src/package.py", "docs/requirements.md", "lock.py"):
        assert not is_manifest(path), path
        assert not is_build_setting(path), path
