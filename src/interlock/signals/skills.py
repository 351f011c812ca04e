"""The skill pack: what an agent reads to speak these protocols, made from the catalogue.

Knows where each agent looks for skills and what to tell it. Refuses to know disks: it gives paths
and texts. No example in it is live: an agent that repeats a skill says nothing.
"""

import re
import textwrap
from collections.abc import Iterable
from typing import Final, Literal

from interlock.signals.batch import encode_manifest, subagent_prompt
from interlock.signals.catalogue import rows
from interlock.signals.columns import WORKING
from interlock.signals.file_examples import EXAMPLE_ARTIFACT, EXAMPLE_MANIFEST, EXAMPLE_SIGNAL
from interlock.signals.signal_block import signal_block
from interlock.signals.signal_file import encode_artifact, encode_signal
from interlock.signals.skill_texts import DESCRIPTION, FILES_TEXT, MANAGED, OVERVIEW, WORKERS

Agent = Literal["claude", "cursor", "codex"]
NAME: Final = "interlock-signals"
FOLDERS: Final[dict[str, str]] = {
    "claude": ".claude/skills",
    "cursor": ".cursor/skills",
    "codex": ".agents/skills",
}
BEGIN: Final = "<!-- interlock:begin -->"
END: Final = "<!-- interlock:end -->"
_STAMP: Final = re.compile(r"^interlock-skill-version: (\d{1,9}(?:\.\d{1,9}){0,3})$", re.MULTILINE)


def skill_files(agent: Agent, version: str) -> dict[str, str]:
    """Every file of the skill by its path in the project."""
    folder = f"{FOLDERS[agent]}/{NAME}"
    texts = {
        "SKILL.md": _overview(agent, version),
        "references/files.md": _files(),
        "references/text-signals.md": _text_signals(),
        "references/line-signals.md": f"# Line signals\n\n{signal_block('session')}",
    }
    return {f"{folder}/{name}": f"{text.rstrip()}\n" for name, text in texts.items()}


def managed_block(folders: Iterable[str]) -> str:
    """What stands between the markers in AGENTS.md, naming the folders that hold the skill."""
    places = ", ".join(f"`{folder}/{NAME}/SKILL.md`" for folder in folders)
    return f"{BEGIN}\n{MANAGED.format(places=places).strip()}\n{END}"


def with_block(text: str, block: str) -> str | None:
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


def stamp_of(text: str) -> tuple[int, ...] | None:
    """The version that wrote a skill, or None if it does not say."""
    found = _STAMP.search(text[:10_000])
    return version_numbers(found[1]) if found else None


def version_numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d{1,9}", version)[:4])


def _overview(agent: Agent, version: str) -> str:
    head = (
        f"---\nname: {NAME}\ndescription: {DESCRIPTION}\nlicense: Apache-2.0\n"
        f'metadata:\n  author: interlock\n  version: "{version}"\n---\n'
    )
    stamp = f"<!--\ninterlock-skill-version: {version}\nMade by `interlock init`.\n-->\n"
    return f"{head}\n{stamp}\n{OVERVIEW}\n## Workers\n\n{WORKERS[agent]}"


def _files() -> str:
    """The examples are what the encoders write."""
    signal = encode_signal(EXAMPLE_SIGNAL).decode()
    artifact = encode_artifact(EXAMPLE_ARTIFACT).decode()
    worker = subagent_prompt(
        case_id="{case_id}",
        step="{step}",
        briefing_path="{briefing_path}",
        signal_path="{signal_path}",
        dispatch_id="N",
    )
    manifest = encode_manifest(EXAMPLE_MANIFEST).decode()
    shown = {"SIGNAL": signal, "ARTIFACT": artifact, "MANIFEST": manifest, "WORKER": worker}
    text = FILES_TEXT
    for name, example in shown.items():
        text = text.replace(f"@{name}@", textwrap.indent(example.rstrip(), "    "))
    return text


def _text_signals() -> str:
    """The rules once, then each role's forms under its own heading."""
    parts = [f"## If you are the {role}\n\n{_forms(signal_block(role))}" for role in WORKING]
    names = ", ".join(f"`{row.name}`" for row in rows("text") if row.roles)
    rules = signal_block(WORKING[0]).partition("\nWhat `")[0]
    told = "Find your role below; a signal of another role is refused."
    return "\n".join(["# Text signals\n", f"All of them: {names}.\n", told, "", rules, "", *parts])


def _forms(block: str) -> str:
    verdict = "must stand alone" in block
    rule = "Your passing verdict must stand alone: no remarks after it.\n\n" if verdict else ""
    _, mark, forms = block.partition("\nWhat `")
    return f"{rule}{mark.lstrip()}{forms}"
