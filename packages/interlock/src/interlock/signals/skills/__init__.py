"""Render the skill pack, which teaches agents these protocols, from the catalogue.

The prose lies in the Markdown files of this folder. This module returns paths and texts; `interlock
init` writes them. It also renders one role's rules and forms for a prompt. Every form is indented:
an agent that repeats a skill or a prompt must not send a signal by doing so.
"""

import re
import textwrap
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
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

DESCRIPTION: Final = (
    "How to answer Interlock, the coordinator that dispatches work to you over signal files, batch "
    "manifests, text signals and SAGE_SIGNAL lines. Use when you find a signal.json or "
    "batch-manifest.json with work that waits, when a prompt asks you to end with a signal such as "
    "a review or audit verdict, or when you run inside a supervised session that reports progress."
)


WORKERS: Final = {
    "claude": "For a batch, start one sub-agent per signal with the Task tool, several in one "
    "message. Give each the worker's prompt from references/files.md. Sub-agents share nothing "
    "with you.\n",
    "cursor": "For a batch, start one Task sub-agent per signal, up to 4 at a time, one level "
    "deep. Give each the worker's prompt from references/files.md. Sub-agents share nothing with "
    "you.\n",
    "codex": "For a batch without sub-agents, work through the pending signals one by one, in the "
    "order of the manifest. With sub-agents, give each the worker's prompt from "
    "references/files.md.\n",
}
_VERDICT_RULE: Final = (
    "- A verdict that lets work pass must stand alone: no remarks after it, no item that does not "
    "hold.\n"
)


@cache
def _read_text(name: str) -> str:
    """Return a text beside this module."""
    return files(__name__).joinpath(name).read_text(encoding="utf-8")


def render_signal_block(role: str, *, task_id: str | None = None, nonce: str | None = None) -> str:
    """Return the rules and forms for a role: a text role of seed 002, or `session` for seed 004."""
    legal = list_role_signals(role)
    if legal:
        return _render_text_block(legal, task_id, nonce)
    lines = list_role_signals(role, "line")
    if not lines:
        raise ValueError(f"no signal belongs to the role {normalize_role(role)}")
    forms = "\n".join(f"- {row.asks}\n\n    {row.template}\n" for row in lines)
    return f"{_read_text('line-rules.md')}\n{forms}"


def _render_text_block(legal: tuple[SignalRow, ...], task_id: str | None, nonce: str | None) -> str:
    rules = _read_text("text-rules.md") + (_VERDICT_RULE if any(row.alone for row in legal) else "")
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
    """Return every file of the skill by its path in the project."""
    folder = f"{FOLDERS[agent]}/{SKILL_NAME}"
    texts = {
        "SKILL.md": _render_overview(agent, version),
        "references/files.md": _render_files(),
        "references/text-signals.md": _render_text_signals(),
        "references/line-signals.md": f"# Line signals\n\n{render_signal_block('session')}",
    }
    return {f"{folder}/{name}": f"{text.rstrip()}\n" for name, text in texts.items()}


def render_managed_block(folders: Iterable[str]) -> str:
    """Return the managed block for AGENTS.md, naming the folders that hold the skill."""
    places = ", ".join(f"`{folder}/{SKILL_NAME}/SKILL.md`" for folder in folders)
    return f"{BEGIN}\n{_read_text('instructions.md').replace('@PLACES@', places).strip()}\n{END}"


def insert_block(text: str, block: str) -> str | None:
    """Return the text with the block inserted or replaced; None if its markers are damaged."""
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
    """Return the version that wrote a skill, or None if it does not say."""
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
    return f"{head}\n{stamp}\n{_read_text('overview.md')}\n## Workers\n\n{WORKERS[agent]}"


def _render_files() -> str:
    """Return the page on files, with examples made by the encoders."""
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
    text = _read_text("files.md")
    for name, example in examples.items():
        text = text.replace(f"@{name}@", textwrap.indent(example.rstrip(), "    "))
    return text


def _render_text_signals() -> str:
    """Return the rules once, then each role's forms under its own heading."""
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
