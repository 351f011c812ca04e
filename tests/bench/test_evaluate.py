"""The evaluation of the analyst: a small one, and that it can tell right from wrong."""

from pathlib import Path

import msgspec
import pytest

from bench.eval_worlds import LANGUAGES, PLANS, build_world
from bench.evaluate import EvalResult, analyze_world, list_rows, render_page, render_plot


@pytest.mark.parametrize("kind", ["plain bug", "environment"])
def test_the_analyst_is_measured_on_a_world_of_each_sort(tmp_path: Path, kind: str) -> None:
    world = build_world(tmp_path, LANGUAGES[0], kind, seed=1)
    found = analyze_world(world, tmp_path)
    assert found.is_first == (kind == "plain bug")
    assert found.category == world.category


def test_worlds_are_the_same_for_the_same_seed(tmp_path: Path) -> None:
    for language in LANGUAGES:
        one = build_world(tmp_path / "a" / language.name, language, "rename", seed=3)
        two = build_world(tmp_path / "b" / language.name, language, "rename", seed=3)
        other = build_world(tmp_path / "c" / language.name, language, "rename", seed=4)
        assert (one.culprit, one.last) == (two.culprit, two.last)
        assert one.culprit != other.culprit


def test_a_wrong_accusation_is_counted_against_the_analyst(tmp_path: Path) -> None:
    world = build_world(tmp_path, LANGUAGES[2], "through an import", seed=1)
    right = EvalResult(world, (world.culprit,), 0.9, "product")
    wrong = msgspec.structs.replace(right, suspects=("0" * 40, world.culprit))
    doubt = msgspec.structs.replace(wrong, score=0.4)
    assert (right.is_first, right.is_wrong) == (True, False)
    assert (wrong.is_first, wrong.is_listed, wrong.is_wrong) == (False, True, True)
    assert not doubt.is_wrong
    rows = {row[0]: row[1:] for row in list_rows([right, wrong, doubt])}
    first, five, _, touched, wrongly = (cell.split()[0] for cell in rows["Go"])
    assert (first, five, touched, wrongly) == ("1/3", "3/3", "0/3", "1/3")
    page = render_page([right, wrong], "x")
    assert "| through an import | 1/2 [0.09, 0.91] |" in page
    assert "1 of 2" in render_plot([right, wrong])
    assert set(PLANS) > {"plain bug", "rename", "dependency", "settings", "beside a sweep", "flake"}
