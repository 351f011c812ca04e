"""The vocabulary of reports: kinds of causes, defect codes, severities, states, and links.

Names and ranks them. Links are http and https only and never carry a name or password.
"""

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

from interlock.system.text import safe_link
from interlock_rca.records import CaseFinding, Launch, Repo, Suspect


class CauseKind(NamedTuple):
    """A kind of cause: its chip, and its noun in a sentence."""

    label: str
    one: str
    many: str
    regression: str
    regressions: str


KINDS: Mapping[str, CauseKind] = {
    "product": CauseKind(
        "Product", "product bug", "product bugs", "product regression", "product regressions"
    ),
    "firmware": CauseKind(
        "Firmware",
        "firmware problem",
        "firmware problems",
        "firmware regression",
        "firmware regressions",
    ),
    "automation": CauseKind(
        "Automation",
        "automation bug",
        "automation bugs",
        "automation bug that came back",
        "automation bugs that came back",
    ),
    "infra": CauseKind(
        "Infrastructure",
        "infrastructure problem",
        "infrastructure problems",
        "infrastructure problem that came back",
        "infrastructure problems that came back",
    ),
    "unknown": CauseKind(
        "Unknown",
        "cause of unknown kind",
        "causes of unknown kind",
        "cause of unknown kind that came back",
        "causes of unknown kind that came back",
    ),
    "flake": CauseKind("Flake", "flake", "flakes", "flake that came back", "flakes that came back"),
}
"""Kinds in order of importance."""

_ALSO = {"environment": "infra", "infrastructure": "infra", "flaky": "flake"}
_CODE_KINDS = {
    "pb": "product",
    "ab": "automation",
    "au": "automation",
    "si": "infra",
    "en": "infra",
    "ib": "infra",
    "fw": "firmware",
    "nd": "flake",
}
DEFECT_MEANINGS: Mapping[str, str] = {
    "pb001": "Product bug",
    "ab001": "Automation bug",
    "au001": "Automation bug",
    "si001": "System issue",
    "en001": "Environment issue",
    "ib003": "Infrastructure bug",
    "fw001": "Firmware issue",
    "nd001": "No defect",
    "ti001": "To investigate",
}
_FAMILIES = {
    "pb": "Product bug",
    "ab": "Automation bug",
    "au": "Automation bug",
    "si": "System issue",
    "en": "Environment issue",
    "ib": "Infrastructure bug",
    "fw": "Firmware issue",
    "nd": "No defect",
    "ti": "To investigate",
}
SEVERITIES = ("critical", "high", "medium", "low")

STATES: Mapping[str, str] = {
    "waiting": "Waits for review",
    "stopped": "Stopped",
    "working": "In analysis",
    "reviewed": "Reviewed",
    "closed": "Closed",
}
"""The states of a case for readers, most urgent first."""

DECISIONS: Mapping[str, str] = {"approve": "approved", "overturn": "overturned"}
STEPS: Mapping[str, str] = {
    "f0": "recall",
    "f1": "triage",
    "f2": "resolve",
    "f3": "investigate",
    "f4": "correlate",
    "f5": "review",
    "f6": "report",
}

QUESTIONS: Mapping[str, str] = {
    "recall": "Was it seen before?",
    "triage": "What kind is it?",
    "resolve": "Where to look?",
    "investigate": "What broke, and why?",
    "correlate": "Is it another case's cause?",
    "review": "Is it true?",
    "report": "Who must know?",
}
"""The question that each step asks."""


def find_kind(case: CaseFinding) -> str:
    """Return the kind of a case: its category, or else that of its defect code."""
    if kind := _normalize_kind(case.category):
        return kind
    return _CODE_KINDS.get(case.defect_type.strip().lower()[:2], "unknown")


def find_first_kind(case: CaseFinding) -> str:
    """Return the kind from triage."""
    return _normalize_kind(case.triaged) or "unknown"


def _normalize_kind(category: str) -> str:
    word = category.strip().lower()
    word = _ALSO.get(word, word)
    return word if word in KINDS else ""


def explain_defect(code: str) -> str:
    """Describe a defect code; a project's own codes are read by their group."""
    known = DEFECT_MEANINGS.get(code.strip().lower())
    if known or not code:
        return known or ""
    group = _FAMILIES.get(code.strip().lower()[:2])
    return f"{group}, the project's own code" if group else "the project's own code"


def rank_severity(severity: str) -> int:
    """Return a rank; lower is worse, and unknown comes last."""
    word = severity.strip().lower()
    return SEVERITIES.index(word) if word in SEVERITIES else len(SEVERITIES)


def find_state(case: CaseFinding) -> str:
    """Return exactly one of STATES."""
    if case.status == "closed":
        return "closed"
    if case.status == "reviewed" or case.decision in DECISIONS:
        return "reviewed"
    if case.stuck:
        return "stopped"
    return "waiting" if normalize_step(case.step) == "review" else "working"


def normalize_step(step: str) -> str:
    """Return a step's plain name: `F5_REVIEW`, `f5` and `review` are all `review`."""
    word = step.strip().lower()
    return STEPS.get(word[:2], word) if word[:1] == "f" else word


def format_step(step: str) -> str:
    """Return a step's name for people: `F5_REVIEW` becomes `Review`. Unknown steps stay as they
    are."""
    name = normalize_step(step)
    return name.capitalize() if name in QUESTIONS else step


def find_case_trust(case: CaseFinding) -> str:
    """Return who approved a finding: human, auto (a rule that somebody chose), or unreviewed."""
    if case.decision not in DECISIONS:
        return "unreviewed"
    return "auto" if case.reviewed_by.strip().lower().split(":")[0] in ("", "auto") else "human"


_COMMIT = re.compile(r"[0-9a-fA-F]{7,64}")
_SSH = re.compile(r"(?:ssh://)?(?:[\w.-]+@)([\w.-]+)(?::\d+/|[:/])([\w./~-]+)")


def build_commit_link(home: str, commit: str) -> str:
    """Return the web address of a commit in a repository."""
    ssh = _SSH.fullmatch(home.strip())
    base = safe_link(f"https://{ssh[1]}/{ssh[2]}" if ssh else home).rstrip("/")
    if not base or not _COMMIT.fullmatch(commit) or "?" in base or "#" in base:
        return ""
    place = "/-/commit/" if "gitlab" in urlsplit(base).netloc else "/commit/"
    return base.removesuffix(".git") + place + commit.lower()


_CLEAR_SUSPECT = 0.5


def find_suspect_word(suspect: Suspect) -> str:
    """Return the word for a suspect by its chance of being the culprit; without a chance, the word
    of whoever named it."""
    is_clear = not suspect.score or suspect.score >= _CLEAR_SUSPECT or suspect.proof == "proven"
    return "suspect" if is_clear else "weak suspect"


def build_suspect_link(suspect: Suspect, repos: Iterable[Repo]) -> str:
    if link := safe_link(suspect.url):
        return link
    homes = (repo.url for repo in repos if repo.name == suspect.repo and repo.url)
    return build_commit_link(next(homes, ""), suspect.commit)


def build_launch_link(launch: Launch) -> str:
    """Return the web address of the tested commit."""
    return build_commit_link(launch.remote, launch.commit)
