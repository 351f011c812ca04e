"""The model file of the culprits: what the fit wrote, and what was set by hand."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from bench.regressions.fit import NOBODY, ask, fit_weights
from bench.regressions.judge import compute_loss, judge
from bench.regressions.report import name_clues
from bench.regressions.rows import Case
from interlock_rca.analyst import scoring

MODEL = Path(scoring.__file__).with_name("culprit_model.toml")
_BY_HAND: Mapping[str, float] = {
    "dependency": 5.0,
    "submodule": 5.0,
    "named by the failure": 4.5,
    "changed the failing test": 3.5,
}
_HEAD = """\
# What each clue counts in the logarithm of the odds. Written by: python -m bench.regressions fit
# The rows and the program are in bench/regressions, the numbers in docs/analyst-eval.md.
"""


def write_model(cases: Sequence[Case]) -> None:
    """Fit the weights on the development projects, and write them with their held-out loss."""
    clues = name_clues()
    known = [case for case in cases if case.split == "development"]
    weights = fit_weights(list(ask(known, clues)), clues)
    held = [case for case in cases if case.split == "held-out"]
    whole = {**weights, **_BY_HAND}
    loss = compute_loss(judge(list(ask(held, whole.keys())), whole))
    lines = [
        f'fitted = "{datetime.now(UTC):%Y-%m-%d}"',
        f"cases = {len(known)}",
        f"loss = {loss:.4f}",
        f"nobody = {weights.pop(NOBODY):.4f}",
        "",
        "[weights]",
        *(f'"{name}" = {weights[name]:.4f}' for name in clues),
        "# Undone fixes are no such changes: set by hand.",
        *(f'"{name}" = {weight}' for name, weight in _BY_HAND.items()),
    ]
    MODEL.write_text(_HEAD + "\n".join(lines) + "\n", encoding="utf-8")
