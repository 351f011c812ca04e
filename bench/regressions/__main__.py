"""The command line of `python -m bench.regressions`."""

import argparse
from pathlib import Path

import msgspec

from bench.regressions import judge, mine, model, report, rows


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the ranking of culprits.")
    verbs = parser.add_subparsers(required=True)
    mining = verbs.add_parser("mine", help="find cases in the projects of projects.toml")
    mining.add_argument("--work", type=Path, required=True)
    mining.add_argument("--language", default="")
    mining.add_argument("--only", nargs="*", default=())
    mining.add_argument("--most", type=int, default=4, help="cases for each project")
    mining.add_argument("--seconds", type=float, default=150, help="time for each project")
    mining.set_defaults(run=_mine)
    rowing = verbs.add_parser("rows", help="compute the clues of every case")
    rowing.add_argument("--work", type=Path, required=True)
    rowing.set_defaults(run=_compute_rows)
    for name, run, words in (
        ("fit", _fit, "fit the weights of the clues on the development projects"),
        ("choose", _choose, "tell which clues do not pay on the development projects"),
        ("report", _report, "rewrite docs/analyst-eval.md"),
    ):
        verbs.add_parser(name, help=words).set_defaults(run=run)
    options = parser.parse_args()
    options.run(options)


def _mine(options: argparse.Namespace) -> None:
    work = options.work.resolve()
    for project in mine.load_projects():
        if options.only and project.name not in options.only:
            continue
        if options.language and project.language != options.language:
            continue
        for recipe in mine.mine_project(project, work, options.most, options.seconds):
            with mine.RECIPES.open("ab") as sink:
                sink.write(msgspec.json.encode(recipe) + b"\n")
            print(recipe.name, recipe.form, flush=True)


def _compute_rows(options: argparse.Namespace) -> None:
    with rows.ROWS.open("wb") as sink:
        for case in rows.compute_rows(mine.load_recipes(), options.work.resolve()):
            sink.write(msgspec.json.encode(case) + b"\n")
            print(case.case, case.split, len(case.candidates), flush=True)


def _fit(options: argparse.Namespace) -> None:
    model.write_model(rows.load_rows())


def _choose(options: argparse.Namespace) -> None:
    """Tell which of the table's clues do not pay, and what the others are worth."""
    known = [case for case in rows.load_rows() if case.split == "development"]
    for clue, worth in judge.choose_clues(known, report.name_clues()).items():
        print(clue, worth.whole, worth.hidden)


def _report(options: argparse.Namespace) -> None:
    report.PAGE.write_text(report.render_page(rows.load_rows()), encoding="utf-8")


if __name__ == "__main__":
    main()
