"""The flags of a calibration: each is a name for what a user may say, and its help."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Carried(StrEnum):
    """Carriers of a calibration whose asks are files, or are pulled by MCP workers."""

    FILE = "file"
    BATCH_FILE = "batch-file"
    MCP = "mcp"


ScenarioWord = Annotated[
    str, typer.Option("--scenario", metavar="NAME|FILE", help="A shipped one, JSON or YAML.")
]
Agent = Annotated[
    str,
    typer.Option(
        "--agent",
        metavar="AGENT",
        help="stub, basic, exec:COMMAND, script:FILE, acp:COMMAND, claude…; default basic.",
    ),
]
Dispatch = Annotated[
    Carried | None, typer.Option("--dispatch", help="Ask by files or workers, not an agent.")
]
Parallel = Annotated[
    int | None,
    typer.Option(
        "--parallel",
        metavar="N",
        min=1,
        help="Dispatches at once; above 1 one case of a family is investigated. Default 1.",
    ),
]
TokenBudget = Annotated[
    int | None,
    typer.Option("--token-budget", metavar="TOKENS", min=0, help="What each run may cost."),
]
Runs = Annotated[int, typer.Option("--runs", metavar="K", help="Independent runs.")]
Resume = Annotated[bool, typer.Option("--resume", help="Go on with the last one.")]
Edition = Annotated[
    str, typer.Option("--edition", metavar="v1|v2", help="Whose rules and bounds count.")
]
Weights = Annotated[
    str, typer.Option("--weights", metavar="NAME", help="Of M19: original, february or v2.")
]
Root = Annotated[
    Path | None,
    typer.Option("--root", metavar="DIR", help="Of signals; default .asterisk/calibrate."),
]
FailUnder = Annotated[
    list[str] | None,
    typer.Option(
        "--fail-under", metavar="[METRIC=]X", help="Exit 3 below it; alone of M19. Repeatable."
    ),
]
CheckLeaks = Annotated[
    bool, typer.Option("--check-leaks", help="Exit 6 if the truth reached a prompt or file.")
]
Html = Annotated[
    Path | None, typer.Option("--html", metavar="FILE", help="The scorecard as a page.")
]
Markdown = Annotated[
    Path | None, typer.Option("--markdown", metavar="FILE", help="The bill, as Markdown.")
]
Out = Annotated[Path | None, typer.Option("--out", metavar="FILE", help="All of it as JSON.")]
