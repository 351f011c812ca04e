"""The verbs of calibrate: scenarios with a known truth, whether they are sound, and comparisons."""

from pathlib import Path
from typing import Annotated

import msgspec
import typer

from interlock.cli.default_verb import DefaultVerb
from interlock.cli.door import ExitCode, app
from interlock.cli.show import Json, counted, document, say, table

calibrate = typer.Typer(
    name="calibrate",
    cls=DefaultVerb,
    help="Measure an agent against failures whose causes are known.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.add_typer(calibrate)


@calibrate.command()
def scenarios(json: Json = False) -> None:
    """The scenarios that come with Interlock."""
    from interlock.rca.calibration.scenario_file import find_scenario, shipped

    found = [find_scenario(name).scenario for name in shipped()]
    rows = [
        {
            "name": each.name,
            "description": each.description,
            "cases": len(each.cases),
            "causes": len(each.rcas),
            "versions": len({case.version for case in each.cases}),
            "repositories": len(each.workspace.repos),
            "planted": len(each.worlds),
            "test": sum(case.split == "test" for case in each.cases),
            "digest": each.digest,
        }
        for each in found
    ]
    if json:
        return document({"scenarios": rows})
    shown = (
        "name",
        "cases",
        "test",
        "causes",
        "versions",
        "repositories",
        "planted",
        "description",
    )
    return table(shown, [[row[name] for name in shown] for row in rows])


@calibrate.command()
def check(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="A scenario, as JSON or YAML, or a shipped name.")
    ],
    json: Json = False,
) -> None:
    """Look for faults in a scenario's labels. Exit 6 if there is one that makes scores wrong."""
    from interlock.rca.calibration.scenario_check import check_scenario, sound
    from interlock.rca.calibration.scenario_file import find_scenario

    scenario, unread = find_scenario(file)
    findings = check_scenario(scenario, unread)
    good = sound(findings)
    if json:
        document(
            {
                "name": scenario.name,
                "cases": len(scenario.cases),
                "sound": good,
                "findings": msgspec.to_builtins(findings),
            }
        )
    else:
        for each in findings:
            place = f"{each.subject}: " if each.subject else ""
            say(f"{each.level}: {place}{each.message} [{each.id}]\n  {each.fix}")
        cases = counted(len(scenario.cases), "case", "cases")
        told = counted(len(findings), "finding", "findings")
        say(f"{scenario.name}: {cases}, {told}, {'sound' if good else 'not sound'}")
    raise typer.Exit(ExitCode.DONE if good else ExitCode.FINDINGS)


@calibrate.command()
def compare(
    a: Annotated[Path, typer.Argument(metavar="A", help="A result of calibrate, as JSON.")],
    b: Annotated[Path, typer.Argument(metavar="B", help="Another of the same scenario.")],
    json: Json = False,
) -> None:
    """Say in what two results differ, and which differences are more than noise."""
    from interlock.calibrate.compare import compare as compared
    from interlock.calibrate.scorecard_json import read_calibration
    from interlock.calibrate.scorecard_text import comparison_text

    found = compared(read_calibration(a), read_calibration(b))
    if json:
        return document(found)
    for line in comparison_text(found):
        say(line)
    return None
