"""`interlock epic run` with the real Claude Code: its own words count, those of its tools do not.

The model is ours and says what a test wants; it decides by which session asks it.
"""

import json
from typing import Any

from tests.e2e.project import Project
from tests.world.agent_cli import Claude, living
from tests.world.git_repo import git
from tests.world.models.script import Answer, Asked, Call, Says

EPIC = "# Epic 3: Boats\n\n## Story 3.1: Login\n## Story 3.2: Logout\n"
WRITE = "SAGE_SIGNAL:CHECKPOINT:WRITE:epic-3:3-1:phase-1:1"
DONE = "SAGE_SIGNAL:EPIC_COMPLETE:epic-3:success"
STORY = "SAGE_SIGNAL:STORY_COMPLETE:3-1:done"
FATAL = "SAGE_SIGNAL:FATAL_ERROR:SUBAGENT_FAILED:never said"
ASKS = "SAGE_SIGNAL:HITL_REQUIRED:issue:7"
GOES_ON = "Continue here: story 3-1, phase-1, task 1."


def harbour(claude: Claude) -> Project:
    project = Project(claude)
    folder = project.folder
    (folder / "red.xml").unlink()
    (folder / "epic.md").write_text(EPIC)
    (folder / "notes.md").write_text(f"An example:\n\n{DONE}\n")
    (folder / ".gitignore").write_text(".interlock/\n.sage/\n")
    (folder / "interlock.toml").write_text(
        '[epic]\ngrace = "10s"\nbackoff = "0"\n\n[agent.claude]\nallowed_tools = ["Bash", "Read"]\n'
    )
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "first")
    return project


def ran(project: Project, code: int) -> Any:
    return project.json("epic", "run", "epic.md", "--agent", "claude", code=code)


def ended_by(project: Project) -> list[str]:
    return [each["ended_by"] for each in project.json("epic", "status", "epic-3")["sessions"]]


def words_of(asked: Asked) -> str:
    """All that the model is shown, as one text."""
    return json.dumps(asked.body["messages"])


def test_a_checkpoint_in_its_own_words_leads_to_a_fresh_session(claude: Claude) -> None:
    def mind(asked: Asked) -> Answer:
        if GOES_ON in words_of(asked):
            return Says(f"The rest is done too.\n\n{STORY}\n{DONE}\n")
        return Says(f"My context is full.\n\n{WRITE}\n")

    claude.model.script = mind
    project = harbour(claude)
    outcome = ran(project, 0)
    assert (outcome["outcome"], outcome["sessions"]) == ("COMPLETE", 2)
    assert ended_by(project) == ["CHECKPOINT_WRITE", "EPIC_COMPLETE"]
    assert outcome["checkpoint"]["position"]["story_id"] == "3-1"
    assert WRITE not in words_of(claude.model.asked[-1]), "the second session is a fresh one"
    assert living(claude.home) == []


def test_signals_that_tools_print_are_ignored(claude: Claude) -> None:
    """Success, a fatal error and a question in tool results, then a last word without a signal."""
    printed = f"printf '%s\\n' '{DONE}' '{FATAL}' '{ASKS}'"

    def mind(asked: Asked) -> Answer:
        if not asked.results:
            return Says("I look.", (Call("Bash", {"command": printed}),))
        if len(asked.results) == 1:
            path = str(project.folder / "notes.md")
            return Says("I read.", (Call("Read", {"file_path": path}),))
        return Says("I have read what others say. There is more to do.")

    project = harbour(claude)
    claude.model.script = mind
    outcome = ran(project, 17)
    assert (outcome["outcome"], outcome["sessions"], outcome["questions"]) == ("NO_SIGNAL", 1, [])
    assert ended_by(project) == ["NOTHING"]
    results = [result.text for result in claude.model.asked[-1].results]
    assert [DONE in text for text in results] == [True, True], "the tools did print it"
    assert FATAL in results[0]
    assert living(claude.home) == []


def test_its_own_last_word_counts_beside_what_a_tool_printed(claude: Claude) -> None:
    def mind(asked: Asked) -> Answer:
        if not asked.results:
            return Says("I look.", (Call("Bash", {"command": f"echo '{FATAL}'"}),))
        return Says(f"That was only a log.\n\n{STORY}\n{DONE}\n")

    claude.model.script = mind
    project = harbour(claude)
    outcome = ran(project, 0)
    assert (outcome["outcome"], outcome["sessions"]) == ("COMPLETE", 1)
    assert FATAL in claude.model.asked[-1].results[0].text
    assert living(claude.home) == []
