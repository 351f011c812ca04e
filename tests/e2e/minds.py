"""What our models think when they work for Interlock: which answer, and which tool to give it by.

Each mind is a script: it decides from the conversation alone, as a model would. Answers come from
a table by step; how they travel (files, MCP, a last message) is the mind's own business.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from rca_tests.worlds.red_repository import F0, F1, F2, F3, F4, F5, F6, PLAIN
from tests.world.models.script import Answer, Asked, Call, Says, Script

Answers = Mapping[str, dict[str, Any]]
HEADINGS = {
    "# F0 Recall": F0,
    "# F1 Triage": F1,
    "# F2 Resolve": F2,
    "# F3 Investigate": F3,
    "# F4 Correlate": F4,
    "# F5 Review": F5,
    "# F6 Report": F6,
}
OVER = "NOTHING WAITS"


def step_of(prompt: str) -> str:
    return next(step for heading, step in HEADINGS.items() if heading in prompt)


def in_words(answers: Answers = PLAIN) -> Script:
    """The answer is the last message, a JSON object."""
    return lambda asked: Says(json.dumps(answers[step_of(asked.prompt)]))


def bash(command: str) -> Call:
    """How Claude Code runs a command."""
    return Call("Bash", {"command": command})


def exec_command(command: str) -> Call:
    """How Codex runs a command."""
    return Call("exec_command", {"cmd": command})


def by_files(shell: Callable[[str], Call], over: Path, answers: Answers = PLAIN) -> Script:
    """Looks for a waiting signal, reads its prompt, writes its artifact; until `over` is there."""
    look = (
        f"until [ -e {over} ]; do"
        " f=$(grep -ls '\"waiting\"' .asterisk/calibrate/*/*/signal.json | head -n 1);"
        ' if [ -n "$f" ]; then cat "$f"; exit; fi; sleep 0.1; done; echo ' + OVER
    )

    def mind(asked: Asked) -> Answer:
        last = asked.results[-1].text if asked.results else ""
        if OVER in last:
            return Says("There is nothing left to do.")
        if '"waiting"' in last:
            return Says("I read the prompt.", (shell(f"cat {_signal(last)['prompt_path']}"),))
        if any(heading in last for heading in HEADINGS):
            return Says("I answer.", (shell(_written(asked, answers)),))
        return Says("I look for work.", (shell(look),))

    return mind


def _written(asked: Asked, answers: Answers) -> str:
    """A command that writes the artifact for the signal seen last, whole or not at all."""
    signal = next(_signal(each.text) for each in reversed(asked.results) if "waiting" in each.text)
    artifact = {"dispatch_id": signal["dispatch_id"], "data": answers[signal["step"]]}
    path = Path(signal["artifact_path"])
    there = path.with_name("signal.json")
    same = f"'\"dispatch_id\": {signal['dispatch_id']},'"
    open_ = f"grep -qs '\"waiting\"' {there} && grep -qs {same} {there}"
    taken = f"while {open_}; do sleep 0.05; done"
    return f"cat > {path}.tmp <<'END'\n{json.dumps(artifact)}\nEND\nmv {path}.tmp {path}\n{taken}"


def _signal(text: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(text[text.index("{") : text.rindex("}") + 1])
    return found


def by_mcp(answers: Answers = PLAIN, lie: dict[str, Any] | None = None) -> Script:
    """Pulls work and hands in answers until there is none. With a `lie`, each is first handed in
    with that in place of the truth, and mended when it is refused."""

    def mind(asked: Asked) -> Answer:
        last = find_object(asked.results[-1].text) if asked.results else {}
        if last.get("done"):
            return Says("The run is over.")
        if asked.results and "Call WaitForMcpServers" in asked.results[-1].text:
            return Says("It is not up yet.", (Call("WaitForMcpServers", {}),))
        work = next(_works(asked), {})
        refused = last.get("accepted") is False
        settled = last.get("refusal") == "Stale" and last["dispatch_id"] == work["dispatch_id"]
        if last.get("available") or (refused and not settled):
            truth = {
                "dispatch_id": work["dispatch_id"],
                "lease": work["lease"],
                "answer": answers[work["step"]],
            }
            first = lie is not None and last.get("available")
            return _pull("interlock_submit", truth | (lie or {}) if first else truth)
        return _pull("interlock_next", {"wait": 20})

    return mind


def _pull(tool: str, words: dict[str, Any]) -> Says:
    return Says("I go on.", (Call(tool, words, server="interlock"),))


def _works(asked: Asked) -> Iterator[dict[str, Any]]:
    """What was handed out, the newest first."""
    for each in reversed(asked.results):
        found = find_object(each.text)
        if found.get("available"):
            yield found


def find_object(text: str) -> dict[str, Any]:
    """The JSON object a tool gave, whatever the client put around it."""
    at = text.find("{")
    while at >= 0:
        try:
            found = json.JSONDecoder().raw_decode(text[at:])[0]
        except ValueError:
            at = text.find("{", at + 1)
            continue
        inner = found.get("text")
        return find_object(inner) if isinstance(inner, str) else found
    return {}
