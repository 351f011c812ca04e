"""The skill pack: what an agent reads to speak these protocols, made from the catalogue.

Gives paths and texts; `interlock init` writes them. Also `signal_block`, the rules and forms of one
role, for a prompt. Every form is shown indented: an agent that repeats a skill or a prompt must not
say a signal by that.
"""

import re
import textwrap
from collections.abc import Iterable
from typing import Final, Literal

from interlock.signals.batch import build_manifest, encode_manifest, render_worker_prompt
from interlock.signals.catalogue import (
    WORKING,
    SignalRow,
    list_role_signals,
    list_signals,
    normalize_role,
)
from interlock.signals.signal_file import Artifact, SignalFile, encode_artifact, encode_signal

# ruff: noqa: E501 -- rows of a Markdown table cannot be wrapped


DESCRIPTION: Final = (
    "How to answer Interlock, the coordinator that dispatches work to you over signal files, batch "
    "manifests, text signals and SAGE_SIGNAL lines. Use when you find a signal.json or "
    "batch-manifest.json with work that waits, when a prompt asks you to end with a signal such as "
    "a review or audit verdict, or when you run inside a supervised session that reports progress."
)

OVERVIEW: Final = """\
# Answering Interlock

Interlock is a program. It reads exactly what is written down and nothing between the lines: a
signal in the wrong place or form is refused, with a sentence that says what to write.

| what you see | protocol | read |
|---|---|---|
| a `signal.json` with `"status": "waiting"` | files | [references/files.md](references/files.md) |
| a `batch-manifest.json` with `"status": "pending"` | batches | [references/files.md](references/files.md) |
| a prompt that names your role and a task | text signals | [references/text-signals.md](references/text-signals.md) |
| a session with epics, stories and checkpoints | line signals | [references/line-signals.md](references/line-signals.md) |

## Files in short

1. Read `dispatch_id`, `prompt_path` and `artifact_path` from `signal.json`, afresh for every step.
2. Read the prompt and do the work.
3. Write `{"dispatch_id": N, "data": {...}}` to `artifact_path`: valid JSON, no Markdown around it.
   Write to a temporary name in the same folder, then rename.
4. Cannot do it? Write no artifact. Set `"status": "error"` and the reason in `signal.json`.

## Text in short

- The signal is one line at column 0, in the exact upper-case form, at the end of your last message.
- Outside code fences, quotes, comments and tags. No bold, no bullet, no emoji before it.
- Under it only its own sections, filled in; explanations go before it.
- One signal, for the task you were given. Never mention a signal's name at the start of another line.

## Lines in short

Do not print signal lines from tools: what a tool prints never counts. Use the command, which checks
the signal and delivers it:

    interlock emit STORY_STARTED 3-1
    interlock emit CHECKPOINT:WRITE epic-3:3-1:phase-2:5

## Check yourself

`interlock lint FILE --role ROLE --task TASK` says what would be accepted of a message, and why not.
"""

WORKERS: Final = {
    "claude": "For a batch, start one sub-agent per signal with the Task tool, several in one message. Give each the worker's prompt from references/files.md. Sub-agents share nothing with you.\n",
    "cursor": "For a batch, start one Task sub-agent per signal, up to 4 at a time, one level deep. Give each the worker's prompt from references/files.md. Sub-agents share nothing with you.\n",
    "codex": "For a batch without sub-agents, work through the pending signals one by one, in the order of the manifest. With sub-agents, give each the worker's prompt from references/files.md.\n",
}

FILES: Final = """\
# Files and batches

## One signal

`signal.json` lies in the case's folder and names one dispatch:

@SIGNAL@

1. Take it only while its `status` is `waiting`.
2. Read the file at `prompt_path`: it holds all you need and says which fields the answer has.
3. Write the answer to `artifact_path`, wrapped as below. `dispatch_id` is a JSON integer, copied
   from the signal you answer. Another number, a string, or none makes the answer stale: it is
   ignored until the time is up.
4. Wait until `signal.json` shows `waiting` with a higher `dispatch_id`, or the run is over. The
   coordinator sets `processing` and `done`; leave those to it.

The wrapped answer:

@ARTIFACT@

If you cannot answer: replace `signal.json` by a copy of itself with `"status": "error"` and the
reason in `"error"`, the same `dispatch_id`. The dispatch then fails at once instead of at its
deadline (10 minutes, if nothing else was set).

Always write to a temporary file in the same folder and rename it: half a file is no answer.

## A batch

`batch-manifest.json` in the suite's folder lists signals that wait at the same time. It counts while
its `status` is `pending` or `in_progress`. Without it, look for single signals.

@MANIFEST@

1. Read the manifest; set its `status` to `in_progress`.
2. Read the file at `briefing_path`: what earlier batches found.
3. If `budget-status.json` lies beside it: over 80 `percent_used`, take one signal at a time; with
   nothing `remaining`, stop.
4. For each entry with the status `pending`: set it to `claimed`, start a worker.
5. When a worker is done, look whether its artifact is there. Set the entry to `done`; if it failed,
   set the entry to `error` and the case's `signal.json` to `error` with the reason.
6. Repeat until nothing is `pending`. The coordinator closes the batch; do not set it to `done`.

Paths in the manifest are relative to the workspace root; those in `signal.json` are absolute.
Change only the fields named here, and keep everything else as it was.

## The worker's prompt

@WORKER@

N is the `dispatch_id` of the signal.
"""

MANAGED_BLOCK: Final = """\
## Interlock

This project is coordinated by Interlock, a program that reads signals to the letter. How to answer
it is told in {places}.

- `signal.json` waiting: read its prompt, write `{{"dispatch_id": N, "data": {{...}}}}` to its
  `artifact_path`, by way of a temporary file and a rename.
- Asked for a signal: one line at column 0 at the end of your last message, outside fences and
  quotes, for the task you were given, with its sections under it and nothing else.
- In a supervised session: report with `interlock emit TYPE PAYLOAD`.
- Not sure? `interlock lint FILE --role ROLE --task TASK`.

Made by `interlock init`; changes between the markers are overwritten.
"""


_TEXT_RULES: Final = """\
## How to answer

Your last message is read by a program. End it with one of the signals below.

- The signal line starts at column 0 and stands alone on its line: the exact name, a colon, a
  blank, the value, nothing more.
- Explanations go before it. Under it come only its sections, as shown.
- Nothing counts inside code fences, quotes, comments or tags.
- Name only the task you were given. Say one signal, once.
- Replace everything in [brackets]; a section that still holds a placeholder counts as absent.
- The forms are shown indented by four blanks. Write yours without the indent.
"""
_VERDICT_RULE: Final = """\
- A verdict that lets work pass must stand alone: no remarks after it, no item that does not hold.
"""
_LINE_RULES: Final = """\
## How to report

Print a signal as a line of its own, at column 0, in upper case. Fields are joined by colons; only
the last may hold a colon. Nothing counts inside code fences or quotes. The forms are shown
indented by four blanks. Write yours without the indent.
"""


def render_signal_block(role: str, *, task_id: str | None = None, nonce: str | None = None) -> str:
    """The rules and forms for one role: a text role of seed 002, or `session` for seed 004."""
    legal = list_role_signals(role)
    if legal:
        return _render_text_block(legal, task_id, nonce)
    lines = list_role_signals(role, "line")
    if not lines:
        raise ValueError(f"no signal belongs to the role {normalize_role(role)}")
    forms = "\n".join(f"- {row.asks}\n\n    {row.template}\n" for row in lines)
    return f"{_LINE_RULES}\n{forms}"


def _render_text_block(legal: tuple[SignalRow, ...], task_id: str | None, nonce: str | None) -> str:
    rules = _TEXT_RULES + (_VERDICT_RULE if any(row.alone for row in legal) else "")
    if nonce:
        rules += f"- Put the line `Dispatch: {nonce}` under the signal line.\n"
    return "\n".join([rules, *(_render_form(row, task_id, nonce) for row in legal)])


def _render_form(row: SignalRow, task_id: str | None, nonce: str | None) -> str:
    template = row.template
    if task_id:
        template = template.replace("[task_id]", task_id)
    if nonce:
        line, _, body = template.partition("\n")
        template = f"{line}\nDispatch: {nonce}\n{body}"
    indented = "".join(f"    {line}".rstrip() + "\n" for line in template.splitlines())
    return f"What `{row.name}` asks: {row.asks}{_format_required(row)}\n\n{indented}"


def _format_required(row: SignalRow) -> str:
    if not row.requires:
        return ""
    wanted = " and ".join(" or ".join(f"`{label}`" for label in some) for some in row.requires)
    return f" It needs {wanted}."


EXAMPLE_SIGNAL: Final = SignalFile(
    status="waiting",
    dispatch_id=1,
    case_id="C1",
    step="F0_RECALL",
    prompt_path="/absolute/path/to/prompt-recall.md",
    artifact_path="/absolute/path/to/recall-result.json",
    timestamp="2026-02-16T12:00:00Z",
)
EXAMPLE_ARTIFACT: Final = Artifact(
    1,
    {
        "match": True,
        "confidence": 0.95,
        "reasoning": "Error pattern matches known symptom S1.",
    },
)
EXAMPLE_MANIFEST: Final = build_manifest(
    1,
    "triage",
    "2026-02-17T10:00:00Z",
    ".asterisk/calibrate/1001/briefing.md",
    {
        "C1": ".asterisk/calibrate/1001/101/signal.json",
        "C2": ".asterisk/calibrate/1001/102/signal.json",
    },
)


Agent = Literal["claude", "cursor", "codex"]
SKILL_NAME: Final = "interlock-signals"
FOLDERS: Final[dict[str, str]] = {
    "claude": ".claude/skills",
    "cursor": ".cursor/skills",
    "codex": ".agents/skills",
}
BEGIN: Final = "<!-- interlock:begin -->"
END: Final = "<!-- interlock:end -->"
_STAMP: Final = re.compile(r"^interlock-skill-version: (\d{1,9}(?:\.\d{1,9}){0,3})$", re.MULTILINE)


def render_skill_files(agent: Agent, version: str) -> dict[str, str]:
    """Every file of the skill by its path in the project."""
    folder = f"{FOLDERS[agent]}/{SKILL_NAME}"
    texts = {
        "SKILL.md": _render_overview(agent, version),
        "references/files.md": _render_files(),
        "references/text-signals.md": _render_text_signals(),
        "references/line-signals.md": f"# Line signals\n\n{render_signal_block('session')}",
    }
    return {f"{folder}/{name}": f"{text.rstrip()}\n" for name, text in texts.items()}


def render_managed_block(folders: Iterable[str]) -> str:
    """What stands between the markers in AGENTS.md, naming the folders that hold the skill."""
    places = ", ".join(f"`{folder}/{SKILL_NAME}/SKILL.md`" for folder in folders)
    return f"{BEGIN}\n{MANAGED_BLOCK.format(places=places).strip()}\n{END}"


def insert_block(text: str, block: str) -> str | None:
    """The text with the block put in, in the place of an older one; None if markers are damaged."""
    if text.count(BEGIN) != text.count(END) or text.count(BEGIN) > 1:
        return None
    newline = "\r\n" if "\r\n" in text else "\n"
    block = block.replace("\n", newline)
    before, begun, rest = text.partition(BEGIN)
    if begun:
        _, ended, after = rest.partition(END)
        return before + block + after if ended else None
    gap = "" if not text else newline if text.endswith("\n") else newline * 2
    return f"{text}{gap}{block}{newline}"


def read_version(text: str) -> tuple[int, ...] | None:
    """The version that wrote a skill, or None if it does not say."""
    found = _STAMP.search(text[:10_000])
    return parse_version(found[1]) if found else None


def parse_version(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d{1,9}", version)[:4])


def _render_overview(agent: Agent, version: str) -> str:
    head = (
        f"---\nname: {SKILL_NAME}\ndescription: {DESCRIPTION}\nlicense: Apache-2.0\n"
        f'metadata:\n  author: interlock\n  version: "{version}"\n---\n'
    )
    stamp = f"<!--\ninterlock-skill-version: {version}\nMade by `interlock init`.\n-->\n"
    return f"{head}\n{stamp}\n{OVERVIEW}\n## Workers\n\n{WORKERS[agent]}"


def _render_files() -> str:
    """The examples are what the encoders write."""
    signal = encode_signal(EXAMPLE_SIGNAL).decode()
    artifact = encode_artifact(EXAMPLE_ARTIFACT).decode()
    worker = render_worker_prompt(
        case_id="{case_id}",
        step="{step}",
        briefing_path="{briefing_path}",
        signal_path="{signal_path}",
        dispatch_id="N",
    )
    manifest = encode_manifest(EXAMPLE_MANIFEST).decode()
    examples = {"SIGNAL": signal, "ARTIFACT": artifact, "MANIFEST": manifest, "WORKER": worker}
    text = FILES
    for name, example in examples.items():
        text = text.replace(f"@{name}@", textwrap.indent(example.rstrip(), "    "))
    return text


def _render_text_signals() -> str:
    """The rules once, then each role's forms under its own heading."""
    parts = [
        f"## If you are the {role}\n\n{_cut_forms(render_signal_block(role))}" for role in WORKING
    ]
    names = ", ".join(f"`{row.name}`" for row in list_signals("text") if row.roles)
    rules = render_signal_block(WORKING[0]).partition("\nWhat `")[0]
    advice = "Find your role below; a signal of another role is refused."
    return "\n".join(
        ["# Text signals\n", f"All of them: {names}.\n", advice, "", rules, "", *parts]
    )


def _cut_forms(block: str) -> str:
    verdict = "must stand alone" in block
    rule = "Your passing verdict must stand alone: no remarks after it.\n\n" if verdict else ""
    _, mark, forms = block.partition("\nWhat `")
    return f"{rule}{mark.lstrip()}{forms}"
