"""Blocks: the data of a prompt, each in its fence, all together no longer than there is room.

A table says which family shows which block and how much of the room it may claim; what one does not
need, others get. A block that has nothing to say is empty; one that must be there says MISSING.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from interlock.rca.prompt_data.subject import Subject
from interlock.runtime.fence import MISSING, FencedText, outline

Groups = Mapping[str, Any]
_FENCE_LINES: Final = 120


class PromptBlock(msgspec.Struct, frozen=True):
    """A kind of block. `weight` is its claim to room, `head` how much of the room its beginning
    gets when it is cut, `text` makes its content; None leaves the block away."""

    name: str
    title: str
    families: str
    weight: int
    head: float
    text: Callable[[Subject, Groups], str | None]


def _failure(about: Subject, groups: Groups) -> str:
    given = groups["identity"]
    shown = {name: given[name] for name in ("case_id", "item_id", "job_id")}
    facts = {**groups["failure"]}
    for name in ("start", "end", "duration", "stats", "log_truncated", "auto_analyzed"):
        facts.pop(name)
    if facts["issue_type"] == MISSING:
        facts.pop("issue_comment")
    asked = ("name", "type", "parent_path")
    known = {name: value for name, value in facts.items() if name in asked or _is_known(value)}
    if known.get("short_name") == known["name"]:
        known.pop("short_name")
    return outline({**shown, **known})


def _launch(about: Subject, groups: Groups) -> str:
    shown = {"launch_id": groups["identity"]["launch_id"], **groups["envelope"], **groups["git"]}
    for name in ("start", "end", "duration"):
        shown.pop(name)
    asked = ("launch_id", "version", "branch", "commit")
    known = {name: value for name, value in shown.items() if name in asked or _is_known(value)}
    known["tests of its job"] = groups["failure"]["stats"]
    attributes = [f"{it['key']} = {it['value']} ({it['of']})" for it in groups["env"]["attributes"]]
    more = groups["env"]["total"] - len(attributes)
    if more:
        attributes.append(f"... and {more} more")
    return outline({**known, "attributes": attributes})


def _times(about: Subject, groups: Groups) -> str:
    stamps = {**groups["timestamps"]}
    for name in ("clock_skew_warning", "clock_skew_unchecked", "clock_plane_note"):
        stamps.pop(name)
    return outline(stamps)


def _siblings(about: Subject, groups: Groups) -> str | None:
    found = groups["siblings"]
    if not found["total"]:
        return None
    lines = outline([_known(each) for each in found["list"]])
    more = found["left_out"]
    return f"{lines}\n... and {more} more" if more else lines


def _repos(about: Subject, groups: Groups) -> str:
    found = groups["workspace"]
    more = found["total"] - len(found["repos"])
    lines = outline([_known(each) for each in found["repos"]])
    return f"{lines}\n... and {more} more" if more else lines


def _symptoms(about: Subject, groups: Groups) -> str | None:
    found = groups["history"]["symptoms"]
    return "\n\n".join(outline(each) for each in found) if found else None


def _rcas(about: Subject, groups: Groups) -> str | None:
    found = groups["history"]["prior_rcas"]
    return "\n\n".join(outline(_known(each)) for each in found) if found else None


def _digest(about: Subject, groups: Groups) -> str | None:
    found = groups["digest"]
    if not found["rcas"]:
        return None
    lines = outline([_known(each) for each in found["rcas"]])
    more = found["total"] - len(found["rcas"])
    return f"{more} earlier ones left out\n{lines}" if more else lines


def _prior(name: str) -> Callable[[Subject, Groups], str | None]:
    def text(about: Subject, groups: Groups) -> str | None:
        found = groups["prior"][name]
        return outline(_known(found) if isinstance(found, dict) else found) if found else None

    return text


def _finding(about: Subject, groups: Groups) -> str | None:
    """The finding without what has a block of its own."""
    found = {**(groups["prior"]["investigate"] or {})}
    for name in ("evidence", "evidence_refs", "contradicting_evidence"):
        found.pop(name, None)
    return outline(_known(found)) if found else None


def _previous(about: Subject, groups: Groups) -> str | None:
    """The last investigation, unless it is one of the findings that are shown anyway."""
    prior = groups["prior"]
    return None if prior["findings"] or not prior["investigate"] else outline(prior["investigate"])


def _review(about: Subject, groups: Groups) -> str | None:
    prior = groups["prior"]
    said = {"review": prior["review"], "note": prior["review_note"]}
    if prior["human_override"]:
        said["human_override"] = prior["human_override"]
    known = {name: value for name, value in said.items() if value}
    return outline(known) if known else None


def _urls(about: Subject, groups: Groups) -> str | None:
    found = _known(groups["urls"])
    return outline(found) if found else None


def _known(facts: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in facts.items() if _is_known(value)}


def _is_known(value: Any) -> bool:
    return value not in (None, "", MISSING, [], {})


_TABLE: Final = (
    PromptBlock("failure", "the failed test", "F0 F1 F2 F3 F4 F5 F6", 4, 1, _failure),
    PromptBlock(
        "message", "error message", "F0 F1 F2 F3 F4 F5 F6", 6, 0.7, lambda s, _: s.failure.message
    ),
    PromptBlock("stack", "stack", "F1 F2 F3", 6, 0.5, lambda s, _: s.failure.stack),
    PromptBlock("log", "log", "F0 F1 F3", 10, 0.4, lambda s, _: s.failure.log),
    PromptBlock("launch", "launch and environment", "F0 F1 F2 F3 F4 F5 F6", 4, 1, _launch),
    PromptBlock("times", "times", "F0 F1 F3 F4 F5", 2, 1, _times),
    PromptBlock("siblings", "other failures of this launch", "F1 F3 F4 F6", 4, 1, _siblings),
    PromptBlock("repos", "repositories", "F1 F2 F3", 5, 1, _repos),
    PromptBlock("symptoms", "symptoms seen before", "F0 F4 F5", 6, 1, _symptoms),
    PromptBlock("rcas", "root causes found before", "F0 F3 F4 F5 F6", 4, 1, _rcas),
    PromptBlock("digest", "root causes known in this suite", "F4 F6", 6, 1, _digest),
    PromptBlock(
        "recall_candidate", "an uncertain match", "F1 F3", 2, 1, _prior("recall_candidate")
    ),
    PromptBlock("recall", "recall", "F5 F6", 3, 1, _prior("recall")),
    PromptBlock("triage", "triage", "F1 F2 F3 F5 F6", 3, 1, _prior("triage")),
    PromptBlock("resolve", "chosen repositories", "F3 F5", 3, 1, _prior("selected_repos")),
    PromptBlock("repo", "the repository of this pass", "F3", 3, 1, _prior("repo")),
    PromptBlock("findings", "what other repositories showed", "F3 F4 F5", 5, 1, _prior("findings")),
    PromptBlock("previous", "the previous investigation", "F2 F3", 5, 1, _previous),
    PromptBlock("investigate", "the finding", "F4 F5 F6", 6, 1, _finding),
    PromptBlock(
        "evidence", "evidence, as checked by machine", "F4 F5 F6", 4, 1, _prior("evidence")
    ),
    PromptBlock("against", "what speaks against it", "F5", 3, 1, _prior("against")),
    PromptBlock("correlate", "comparison with other cases", "F5 F6", 3, 1, _prior("correlate")),
    PromptBlock("review", "the reviewer's words", "F1 F2 F3 F4 F5 F6", 3, 1, _review),
    PromptBlock("urls", "addresses", "F3 F5 F6", 2, 1, _urls),
)
BLOCKS: Final = {block.name: block for block in _TABLE}
"""Every block, in the order in which they claim room."""


def fill_blocks(about: Subject, groups: Groups, room: int) -> dict[str, FencedText]:
    """The blocks of the subject's family, none longer than its share of that many characters."""
    texts = {
        block.name: text
        for block in _TABLE
        if about.family.short in block.families and (text := block.text(about, groups)) is not None
    }
    needs = {name: len(text) for name, text in texts.items()}
    shares = share_out(needs, room - _FENCE_LINES * len(texts))
    return {
        name: about.fence.block(BLOCKS[name].title, text, shares[name], BLOCKS[name].head)
        for name, text in texts.items()
    }


def share_out(needs: Mapping[str, int], room: int) -> dict[str, int]:
    """Room for each block: what it needs, or its share by weight of what the modest ones left."""
    shares: dict[str, int] = {}
    weights = sum(BLOCKS[name].weight for name in needs)
    for name in sorted(needs, key=lambda name: (needs[name] / BLOCKS[name].weight, name)):
        shares[name] = max(0, min(needs[name], room * BLOCKS[name].weight // weights))
        room -= shares[name]
        weights -= BLOCKS[name].weight
    return shares
