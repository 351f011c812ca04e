"""Compare what an agent says it checked and changed with what was observed. Pure.

Claims are read from an answer's sections, whatever their layout. A claim that none of our own
results can confirm is unchecked, never verified.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal

import msgspec

from interlock.signals import body
from interlock_delivery.checks.records import Check, CheckResult, normalize_name

ClaimedOutcome = Literal["pass", "fail", "unclear", "changed"]
Found = Literal["verified", "refuted", "unchecked"]

_SECTIONS: Final[dict[str, tuple[str, ...]]] = {
    "READY_FOR_REVIEW": ("verification_results",),
    "AUDIT_PASSED": ("verification_results", "commands_executed"),
    "REMEDIATION_COMPLETE": ("verification_results",),
    "HEALTH_AUDIT: HEALTHY": ("verification_results",),
    "HEALTH_AUDIT: UNHEALTHY": ("failed_checks", "passing_checks"),
}
"""The sections of each signal that report results of checks."""
_FILE_SECTIONS: Final = ("files_modified", "tests_written")
_GOOD: Final = re.compile(
    r"(?i)(?:pass|ok\b|verified|done\b|met\b|confirmed|success|green|yes\b|✅|✓|✔)"
)
_SIGNS: Final = re.compile(r"\A[^\w✅✓✔❌✗✘]+")
_CROSS: Final = re.compile(r"[❌✗✘]")
_CODE: Final = re.compile(r"(?i)(?:\A|exit(?:s|ed)?(?: code| status| with)?[: =]*)(-?\d{1,5})\b")
_JOINED: Final = re.compile(r"(.+?): (.*): (-?\d{1,5})\Z", re.DOTALL)
_HEADER: Final = re.compile(r"(?i)check\W+environment\b")
_EXITS: Final = re.compile(r"(?i)\s+(?:exits?|returns?|passes|succeeds)\b.*\Z", re.DOTALL)
_EVERYWHERE: Final = ("", "all", "all environments", "both", "any")
_NO_FILE: Final = ("none", "n/a", "no files", "nothing", "")
_PLACE: Final = re.compile(r"(?::\d+(?:[-:]\d+)?|\s+\([^()]*\))\Z")


class ClaimRow(msgspec.Struct, frozen=True):
    """One line of an agent's own table of results."""

    check: str
    environment: str
    said: ClaimedOutcome
    exit_code: int | None = None


class AgentClaim(msgspec.Struct, frozen=True):
    """One claim of an agent, and what was found."""

    check: str
    """The check's own name if it is known, else the agent's words; or a path."""
    environment: str
    said: ClaimedOutcome
    found: Found
    sentence: str = ""
    kind: Literal["check", "file"] = "check"


class ClaimComparison(msgspec.Struct, frozen=True):
    """The number of true and false claims of one agent in one role."""

    agent: str
    role: str
    claimed: int
    verified: int
    refuted: int
    unchecked: int


def read_claim_rows(signal: str, fields: Mapping[str, Any]) -> tuple[ClaimRow, ...]:
    """Return the lines of a signal's sections that name a check and its result."""
    return tuple(
        _build_row(each)
        for section in _SECTIONS.get(signal, ())
        for each in _convert_entries(fields.get(section), body.ReportedCheck)
        if each.status or not _HEADER.match(each.name)
    )


def compare_claims(
    rows: Iterable[ClaimRow], results: Sequence[CheckResult], checks: Sequence[Check] = ()
) -> tuple[AgentClaim, ...]:
    """Compare each line with our own results; `checks` also lets a command stand for its name."""
    names = {normalize_name(" ".join(each.command)): each.name for each in checks}
    names |= {normalize_name(each.check): each.check for each in results}
    return tuple(_compare_row(row, names, results) for row in rows)


def compare_file_claims(
    fields: Mapping[str, Any], changed: Iterable[str], root: str = ""
) -> tuple[AgentClaim, ...]:
    """Compare the files an agent says it changed with those that did change."""
    real = sorted(set(changed))
    paths: dict[str, None] = {}
    for section in _FILE_SECTIONS:
        for each in _convert_entries(fields.get(section), body.FileNote):
            path = _clean_path(each.file, root)
            if path.casefold() not in _NO_FILE:
                paths[path] = None
    return tuple(_compare_file(path, real) for path in paths)


def count_claims(claims: Iterable[tuple[str, str, AgentClaim]]) -> tuple[ClaimComparison, ...]:
    """Count (agent, role, claim) rows by agent and role, sorted by both."""
    counts: dict[tuple[str, str], dict[Found, int]] = {}
    for agent, role, claim in claims:
        kinds = counts.setdefault((agent, role), {"verified": 0, "refuted": 0, "unchecked": 0})
        kinds[claim.found] += 1
    return tuple(
        ClaimComparison(agent, role, sum(kinds.values()), *kinds.values())
        for (agent, role), kinds in sorted(counts.items())
    )


def _convert_entries(value: Any, kind: Any) -> list[Any]:
    """Return the entries of a section, whether parsed or loaded from the journal."""
    try:
        return msgspec.convert(value or [], list[kind], from_attributes=True)
    except msgspec.ValidationError:
        return []


def _build_row(reported: body.ReportedCheck) -> ClaimRow:
    name, environment, detail = reported.name, reported.environment, reported.detail
    if not environment and (joined := _JOINED.match(name)):
        name, environment, detail = joined.groups()
    code = _CODE.search(detail)
    return ClaimRow(
        name.strip("*_`| \t"),
        environment.strip("*_`| \t"),
        _read_outcome(reported.status),
        int(code[1]) if code else None,
    )


def _read_outcome(status: str) -> ClaimedOutcome:
    word = _SIGNS.sub("", status.strip())
    if _CROSS.match(word):
        return "fail"
    bare = word.lstrip("✅✓✔ ")
    if body.is_negative(body.ReportedCheck("", bare.strip("*_`. "))):
        return "fail"
    return "pass" if _GOOD.match(word) else "unclear"


def _compare_row(
    row: ClaimRow, names: Mapping[str, str], results: Sequence[CheckResult]
) -> AgentClaim:
    name = _find_check_name(row.check, names)
    if name is None:
        return AgentClaim(
            row.check, row.environment, row.said, "unchecked", "no check has this name"
        )
    about = [
        each for each in results if each.check == name and _is_in_environment(each, row.environment)
    ]
    ran = [each for each in about if not each.unavailable]
    outcome = _read_exit_code(row, ran)
    if not about or len(ran) < len(about) or outcome == "unclear":
        why = _explain_unchecked(outcome, about)
        return AgentClaim(name, row.environment, outcome, "unchecked", why)
    failed = next((each for each in ran if not each.passed), None)
    true = (failed is None) == (outcome == "pass")
    sentence = f"the agent reported {outcome}; {_describe_result(failed)}"
    return AgentClaim(name, row.environment, outcome, "verified" if true else "refuted", sentence)


def _find_check_name(words: str, names: Mapping[str, str]) -> str | None:
    for each in (words, _EXITS.sub("", words)):
        if (found := names.get(normalize_name(each))) is not None:
            return found
    return None


def _is_in_environment(result: CheckResult, environment: str) -> bool:
    wanted = [normalize_name(each) for each in re.split(r"[,;/+]| and ", environment)]
    everywhere = normalize_name(environment) in _EVERYWHERE
    exact = normalize_name(environment) == normalize_name(result.environment)
    return everywhere or exact or normalize_name(result.environment) in wanted


def _read_exit_code(row: ClaimRow, ran: Sequence[CheckResult]) -> ClaimedOutcome:
    """Return the outcome of a claim, judging a bare exit code by the expected one."""
    if row.said != "unclear" or row.exit_code is None or not ran:
        return row.said
    return "pass" if row.exit_code == ran[0].expected else "fail"


def _explain_unchecked(outcome: ClaimedOutcome, about: Sequence[CheckResult]) -> str:
    if not about:
        return "we did not run it there"
    return "it states no result" if outcome == "unclear" else "it could not run here"


def _describe_result(failed: CheckResult | None) -> str:
    if failed is None:
        return "it passes"
    if failed.timed_out:
        return f"in {failed.environment} it timed out"
    return f"in {failed.environment} its exit code is {failed.exit_code}, not {failed.expected}"


def _clean_path(text: str, root: str) -> str:
    path = _PLACE.sub("", text.strip("*_`\"' \t")).strip("*_`\"' \t")
    if root and path.startswith(f"{root.rstrip('/')}/"):
        path = path[len(root.rstrip("/")) + 1 :]
    while path.startswith("./"):
        path = path[2:]
    return path


def _compare_file(path: str, changed: Sequence[str]) -> AgentClaim:
    found = any(_is_about(path, each) for each in changed)
    if not found and (" " in path or not re.search(r"[./]", path)):
        return AgentClaim(path, "", "changed", "unchecked", "this is not a path", "file")
    sentence = "it changed" if found else "it did not change"
    return AgentClaim(path, "", "changed", "verified" if found else "refuted", sentence, "file")


def _is_about(name: str, path: str) -> bool:
    """Return True if a name is the path, ends it, or is a folder above it."""
    return path == name or path.endswith(f"/{name}") or path.startswith(f"{name.rstrip('/')}/")
