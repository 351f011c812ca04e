"""The page docs/analyst-eval.md, from stored rows and the model that is in use."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import mean

from bench.regressions.fit import ELSEWHERE, NOBODY, ORIGIN, Weights, ask
from bench.regressions.judge import (
    SURE,
    Verdict,
    compare,
    compute_loss,
    cross_validate,
    judge,
    measure_worth,
    split_tellings,
)
from bench.regressions.rows import Case
from interlock.system.statistics import wilson_interval
from interlock_rca.analyst.culprits import CLUES
from interlock_rca.analyst.scoring import load_model

TEMPLATE = Path(__file__).with_name("page.md")
PAGE = Path(__file__).parents[2] / "docs" / "analyst-eval.md"
UNMEASURED = ("dependency", "submodule", "named by the failure", "changed the failing test")
"""Clues of changes that an undone fix never is, as it is one of source code: set by hand."""
_LOSSES = ("loss without it", "the same, hidden culprits")
_BINS = ((0.9, 1.01), (0.7, 0.9), (0.5, 0.7), (0.0, 0.5))


def name_clues() -> list[str]:
    """Return the clues that stored cases can say something about."""
    return [clue.name for clue in CLUES if clue.name not in UNMEASURED]


def load_weights() -> dict[str, float]:
    """Return the weights in use as the fit knows them."""
    model = load_model("culprit")
    return {**model.weights, NOBODY: model.nobody}


def render_page(cases: Sequence[Case]) -> str:
    """Return the whole page."""
    weights = load_weights()
    held = [case for case in cases if case.split == "held-out"]
    verdicts = judge(list(ask(held, weights.keys())), weights)
    sizes = [len(case.candidates) for case in cases]
    return TEMPLATE.read_text(encoding="utf-8").format(
        cases=len(cases),
        projects=len({case.project for case in cases}),
        languages=", ".join(sorted({case.language for case in cases})),
        fewest=min(sizes),
        most=max(sizes),
        fitted=len(cases) - len(held),
        held=len(held),
        held_projects=len({case.project for case in held}),
        origin=_join(sorted(ORIGIN & weights.keys())),
        elsewhere=f"{ELSEWHERE:.0%}",
        unmeasured=_join(UNMEASURED),
        groups=_render_table(("", "cases", "first suspect", "among five"), _list_groups(verdicts)),
        baselines=_render_table(("", "first suspect", "among five"), _list_baselines(held)),
        bins=_render_table(("it says", "right", "on average it says"), _list_bins(verdicts)),
        wrong=_tell_wrong(verdicts),
        worth=_render_table(
            ("clue", "weight", "culprits with it", *_LOSSES, "first suspects without it"),
            _list_worth(cases, weights),
        ),
        removed=_render_table(("clue", "culprits with it", *_LOSSES), _list_removed(cases)),
    )


def _join(names: Sequence[str]) -> str:
    return ", ".join(f"*{name}*" for name in names)


def _render_table(head: Sequence[str], rows: Iterator[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def format_share(right: float, of: int) -> str:
    """Return a share with its interval."""
    interval = wilson_interval(right, of)
    if interval is None:
        return "none"
    return f"{right:g}/{of} [{interval.low:.2f}, {interval.high:.2f}]"


def _list_groups(verdicts: Sequence[Verdict]) -> Iterator[Sequence[str]]:
    plain, masked = split_tellings(verdicts)
    yield _count_ranks("all", plain)
    yield _count_ranks("as if the test had come from elsewhere", masked)
    kinds: tuple[Callable[[Case], str], ...] = (
        lambda case: case.language,
        lambda case: f"undone: {case.form}",
    )
    for kind in kinds:
        for name in sorted({kind(each.question.case) for each in plain}):
            yield _count_ranks(name, [each for each in plain if kind(each.question.case) == name])


def _count_ranks(name: str, verdicts: Sequence[Verdict]) -> Sequence[str]:
    count = len(verdicts)
    first = sum(each.rank == 1 for each in verdicts)
    five = sum(each.rank <= 5 for each in verdicts)
    return name, str(count), format_share(first, count), format_share(five, count)


def _list_baselines(cases: Sequence[Case]) -> Iterator[Sequence[str]]:
    named, newest = [], []
    for case in cases:
        commits = [each.commit for each in case.candidates]
        newest.append(commits.index(case.culprit) + 1)
        order = sorted(case.candidates, key=lambda each: not each.named)
        named.append([each.commit for each in order].index(case.culprit) + 1)
    chance = sum(1 / len(case.candidates) for case in cases)
    five = sum(min(1.0, 5 / len(case.candidates)) for case in cases)
    count = len(cases)
    for name, ranks in (
        ("newest commit that changed a file named like the test", named),
        ("newest commit", newest),
    ):
        first = sum(rank == 1 for rank in ranks)
        yield name, format_share(first, count), format_share(sum(r <= 5 for r in ranks), count)
    yield "a commit at random", f"{chance:.1f}/{count}", f"{five:.1f}/{count}"


def _list_bins(verdicts: Sequence[Verdict]) -> Iterator[Sequence[str]]:
    guilty = [each for each in verdicts if each.question.answer >= 0]
    for low, high in _BINS:
        own = [each for each in guilty if low <= each.top < high]
        if own:
            said = f"{low:g} or more" if high > 1 else f"{low:g} to {high:g}"
            right = sum(each.rank == 1 for each in own)
            yield said, format_share(right, len(own)), f"{mean(each.top for each in own):.2f}"


def _tell_wrong(verdicts: Sequence[Verdict]) -> str:
    plain, masked = split_tellings(verdicts)
    absent = [each for each in verdicts if each.question.answer < 0]
    counts = [
        f"{sum(each.is_wrong for each in group)} of {len(group)} {words}"
        for group, words in (
            (plain, "cases as they are"),
            (masked, "without the clues of origin"),
            (absent, "where the culprit was taken out of the range"),
        )
    ]
    return f"A wrong commit is accused with {SURE} or more in {'; '.join(counts)}."


def _list_worth(cases: Sequence[Case], weights: Weights) -> Iterator[Sequence[str]]:
    names = name_clues()
    for name, worth in measure_worth(cases, names).items():
        rest = set(names) - {name}
        count = str(_count_culprits(cases, name))
        first = _count_first(cross_validate(cases, rest, weights))
        yield name, f"{weights[name]:.2f}", count, str(worth.whole), str(worth.hidden), first
    whole = cross_validate(cases, names, weights)
    yield "(with all)", "", "", f"{compute_loss(whole):.3f}", "", _count_first(whole)


def _count_first(verdicts: Sequence[Verdict]) -> str:
    plain, masked = split_tellings(verdicts)
    return f"{sum(each.rank == 1 for each in plain)} and {sum(each.rank == 1 for each in masked)}"


def _count_culprits(cases: Sequence[Case], name: str) -> int:
    return sum(
        bool(each.clues and each.clues.get(name))
        for case in cases
        for each in case.candidates
        if each.commit == case.culprit
    )


def _list_removed(cases: Sequence[Case]) -> Iterator[Sequence[str]]:
    names = name_clues()
    groups = (cases, [case for case in cases if case.form == "hidden"])
    whole = [cross_validate(group, names) for group in groups]
    stored = {name for case in cases for each in case.candidates for name in (each.clues or {})}
    for name in sorted(stored - set(names) - set(UNMEASURED)):
        more = [cross_validate(group, {*names, name}) for group in groups]
        gains = (str(compare(*pair)) for pair in zip(whole, more, strict=True))
        yield name, str(_count_culprits(cases, name)), *gains
