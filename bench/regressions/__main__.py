"""The command line of `python -m bench.regressions`."""

import argparse
from pathlib import Path

import msgspec

from bench.regressions import mine, rows


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


if __name__ == "__main__":
    main()
