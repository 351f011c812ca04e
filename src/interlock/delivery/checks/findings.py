"""What our programs found, as the journal keeps it and as an agent reads it.

Text and plain values from records; nothing is looked up here. Refuses to know steps and rules.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from interlock.delivery.checks.records import CheckResult
from interlock.delivery.checks.verdict import CheckVerdict
from interlock.delivery.worktrees.diff import Diff
from interlock.delivery.worktrees.line import Conflict
from interlock.delivery.worktrees.violation import Violation

_MOST_TEXT: Final = 400_000
_MOST_OUTPUT: Final = 3_000


def row(result: CheckResult) -> dict[str, Any]:
    """A result as the journal keeps it: what it came to, and the end of what it printed."""
    return {
        "check": result.check,
        "environment": result.environment,
        "exit_code": result.exit_code,
        "passed": result.passed,
        "seconds": result.seconds,
        "tests": result.test_count,
        "note": result.note,
        "output": "" if result.passed else result.output_tail[-_MOST_OUTPUT:],
    }


def summary(
    verdict: CheckVerdict,
    results: Sequence[CheckResult],
    violations: Sequence[Violation] = (),
    *,
    empty: bool = False,
) -> str:
    """What a developer must know of a look at the work."""
    if violations:
        return "\n".join(each.sentence for each in violations)
    if empty:
        return "Nothing was changed in the tree."
    if verdict.ok:
        return f"{len(results)} checks hold"
    failed = [each for each in results if not each.passed]
    shown = [
        f"{each.check} ({each.environment}):\n{each.output_tail[-_MOST_OUTPUT:]}" for each in failed
    ]
    return "\n\n".join(("\n".join(verdict.reasons), *shown))


def conflict(found: Conflict) -> dict[str, Any]:
    files = ", ".join(found.files)
    return {
        "outcome": "conflict",
        "files": list(found.files),
        "summary": f"Others changed the same places meanwhile: {files}\n\n{found.text}",
    }


def new_texts(root: Path, diff: Diff) -> dict[str, str]:
    """The new texts of the files that changed, as far as they are text of a sane size."""
    found: dict[str, str] = {}
    for file in diff.files:
        path = root / file.path
        try:
            if file.added and path.stat().st_size <= _MOST_TEXT and not path.is_symlink():
                found[file.path] = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            continue
    return found
