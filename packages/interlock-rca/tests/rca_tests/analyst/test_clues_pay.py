"""The clues of culprits on stored rows of real undone fixes: each pays, and the page is true."""

from bench.regressions.fit import ask
from bench.regressions.judge import compute_loss, judge, measure_worth, split_tellings
from bench.regressions.report import PAGE, load_weights, name_clues
from bench.regressions.rows import load_rows
from interlock_rca.analyst.scoring import load_model

CASES = load_rows()
HELD_OUT = [case for case in CASES if case.split == "held-out"]
_LEAST_CASES = 100
_LEAST_PROJECTS = 25


def test_the_rows_are_of_many_projects_in_four_languages() -> None:
    assert len(CASES) >= _LEAST_CASES
    assert len({case.project for case in CASES}) >= _LEAST_PROJECTS
    assert {case.language for case in CASES} == {"go", "java", "javascript", "python"}
    fitted = {case.project for case in CASES if case.split == "development"}
    assert not fitted & {case.project for case in HELD_OUT}


def test_every_clue_pays() -> None:
    worth = measure_worth(CASES, name_clues())
    assert {name: each for name, each in worth.items() if not each.pays} == {}


def test_held_out_projects_are_judged_as_well_as_the_page_says() -> None:
    weights = load_weights()
    verdicts = judge(list(ask(HELD_OUT, weights.keys())), weights)
    assert compute_loss(verdicts) <= load_model("culprit").loss + 0.001
    plain, masked = split_tellings(verdicts)
    page = PAGE.read_text(encoding="utf-8")
    for name, group in (("all", plain), ("as if the test had come from elsewhere", masked)):
        first = sum(each.rank == 1 for each in group)
        assert f"{name} | {len(group)} | {first}/{len(group)} " in page
