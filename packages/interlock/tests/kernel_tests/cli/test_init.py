"""init: what it writes, what it leaves alone; and doctor, who looks at the stamps."""

import os
from pathlib import Path

import pytest

from tests.world.command_line import CliResult, World

SKILL = "skills/interlock-signals"
FIRST = f"""\
written    interlock.toml
written    circuits/first.yaml
written    .claude/{SKILL}/SKILL.md
written    .claude/{SKILL}/references/files.md
written    .claude/{SKILL}/references/text-signals.md
written    .claude/{SKILL}/references/line-signals.md
written    .mcp.json
written    AGENTS.md
"""


@pytest.fixture(autouse=True)
def installed(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A command `interlock` on the PATH."""
    command = tmp_path_factory.mktemp("bin") / "interlock"
    command.touch(0o755)
    monkeypatch.setenv("PATH", f"{command.parent}{os.pathsep}{os.environ['PATH']}")
    return command


def test_says_that_agents_will_not_find_the_command(world: World, installed: Path) -> None:
    installed.unlink()
    os.environ["PATH"] = str(installed.parent)
    result = world.say("init")
    assert result.code == 0
    assert "agents start 'interlock' by name, and it is not on your PATH" in result.err


def files(world: World) -> dict[str, bytes]:
    found = (path for path in world.folder.rglob("*") if path.is_file())
    return {str(path.relative_to(world.folder)): path.read_bytes() for path in found}


def test_sets_a_project_up_and_does_so_once(world: World) -> None:
    assert world.say("init", "--agent", "claude") == CliResult(0, FIRST, "")
    before = files(world)
    again = "\n".join(FIRST.replace("written  ", "unchanged").splitlines()[2:]) + "\n"
    assert world.say("init", "--agent", "claude") == CliResult(0, again, "")
    assert world.say("init", "--agent", "claude", "--force") == CliResult(0, again, "")
    assert files(world) == before


def test_what_it_writes_is_sound(world: World) -> None:
    world.say("init", "--agent", "claude", "--agent", "cursor", "--agent", "codex")
    prompts = [name for name in files(world) if name.endswith(".md")]
    assert len(prompts) == 13
    assert world.say("lint", *prompts) == CliResult(0, "no findings\n", "")
    assert world.say("circuit", "verify", "first").code == 0
    assert world.say("doctor").code == 0


@pytest.mark.parametrize(
    ("there", "written"),
    [
        ([], [".agents"]),
        ([".claude"], [".claude"]),
        ([".cursor", ".claude"], [".claude", ".cursor"]),
    ],
)
def test_without_a_word_it_teaches_who_is_there(
    world: World, there: list[str], written: list[str]
) -> None:
    for folder in there:
        (world.folder / folder).mkdir()
    world.say("init")
    found = [f for f in (".agents", ".claude", ".cursor") if (world.folder / f / SKILL).is_dir()]
    assert found == written


def test_the_users_own_is_never_touched(world: World) -> None:
    world.write("interlock.toml", "parallel = 3\n")
    world.write("circuits/mine.yaml", "mine\n")
    world.write("AGENTS.md", "# Ours\n\nBe kind.\n")
    skill = f".claude/{SKILL}/SKILL.md"
    world.write(skill, "my own words\n")
    result = world.say("init", "--agent", "claude")
    assert f"kept       {skill}" in result.out
    assert "--force replaces skills" in result.out
    after = files(world)
    assert after["interlock.toml"] == b"parallel = 3\n"
    assert not (world.folder / "circuits" / "first.yaml").exists()
    assert after[skill] == b"my own words\n"
    assert after["AGENTS.md"].startswith(b"# Ours\n\nBe kind.\n\n<!-- interlock:begin -->\n")
    assert f"replaced   {skill}" in world.say("init", "--agent", "claude", "--force").out


def test_the_block_names_every_skill_that_is_there(world: World) -> None:
    world.say("init", "--agent", "claude")
    world.say("init", "--agent", "cursor")
    text = (world.folder / "AGENTS.md").read_text()
    assert f".claude/{SKILL}" in text
    assert f".cursor/{SKILL}" in text
    assert text.count("interlock:begin") == 1


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"<!-- interlock:begin -->\n", "AGENTS.md has damaged interlock markers"),
        (b"\xff\xfe", "AGENTS.md cannot be read"),
    ],
)
def test_what_it_cannot_understand_it_leaves(world: World, content: bytes, sentence: str) -> None:
    (world.folder / "AGENTS.md").write_bytes(content)
    result = world.say("init", "--agent", "claude")
    assert result.code == 2
    assert sentence in result.err
    assert files(world)["AGENTS.md"] == content


def test_a_link_inside_is_followed_and_one_outside_is_not(
    world: World, tmp_path_factory: pytest.TempPathFactory
) -> None:
    world.write("CLAUDE.md", "# Ours\n")
    (world.folder / "AGENTS.md").symlink_to("CLAUDE.md")
    assert world.say("init", "--agent", "claude").code == 0
    assert (world.folder / "AGENTS.md").is_symlink()
    assert "interlock:begin" in (world.folder / "CLAUDE.md").read_text()
    outside = tmp_path_factory.mktemp("outside") / "AGENTS.md"
    outside.write_text("theirs\n")
    (world.folder / "AGENTS.md").unlink()
    (world.folder / "AGENTS.md").symlink_to(outside)
    result = world.say("init", "--agent", "claude")
    assert result.code == 2
    assert "leads out of the project" in result.err
    assert outside.read_text() == "theirs\n"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written(world: World) -> None:
    world.folder.chmod(0o500)
    try:
        result = world.say("init")
    finally:
        world.folder.chmod(0o700)
    assert result.code == 2
    assert "cannot be written" in result.err


def test_as_one_object(world: World) -> None:
    found = world.say("init", "--agent", "codex", "--json").json["files"]
    assert found[0] == {"path": "interlock.toml", "did": "written"}


def test_doctor_warns_of_an_older_skill(world: World) -> None:
    world.say("init", "--agent", "claude", "--agent", "cursor")
    fresh = world.say("doctor")
    assert f"ok    skills.claude: .claude/{SKILL}/SKILL.md is from 0.1.0\n" in fresh.out
    skill = world.folder / ".cursor" / SKILL / "SKILL.md"
    _replace(skill, "interlock-skill-version: 0.1.0", "interlock-skill-version: 0.0.9")
    result = world.say("doctor")
    assert result.code == 0
    assert (
        f"note  skills.cursor: .cursor/{SKILL}/SKILL.md is from 0.0.9, Interlock is 0.1.0: "
        "run interlock init --agent cursor --force\n"
    ) in result.out
    _replace(skill, "interlock-skill-version: 0.0.9", "")
    assert "is from an unknown version" in world.say("doctor").out


def _replace(path: Path, old: str, new: str) -> None:
    path.write_text(path.read_text().replace(old, new))
