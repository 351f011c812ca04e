"""Agents that answer in files: signal.json, the batch manifest, and prompts answered by hand."""

from collections.abc import Callable

import msgspec


class DispatchFiles(msgspec.Struct, frozen=True):
    """The names of one dispatch's files."""

    prompt: str
    artifact: str


NameFiles = Callable[[str, int], DispatchFiles]
"""Return the names of the files for a step and an attempt; applications bring their own."""


def name_files(step: str, attempt: int) -> DispatchFiles:
    """Return `prompt-STEP.md` and `STEP-result.json`; a later attempt has a prompt of its own."""
    again = f"-loop-{attempt}" if attempt > 1 else ""
    return DispatchFiles(f"prompt-{step}{again}.md", f"{step}-result.json")
