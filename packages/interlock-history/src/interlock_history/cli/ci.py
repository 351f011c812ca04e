"""The verb for pipelines: ci."""

import os
import secrets
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from interlock.cli.app import ExitCode, app
from interlock.cli.options import expand_options
from interlock.cli.output import Db, Json, echo, echo_note, open_project
from interlock.system.text import format_line
from interlock_history.ci.digest import Digest, ExpectedJobs, FailOn
from interlock_history.ci.publish import (
    COMMENT_FILE,
    SUMMARY_FILE,
    Publication,
    defuse,
    find_annotations,
    publish,
)
from interlock_history.ci.render import Links, format_headline, render_comment, render_summary
from interlock_history.ci.run import Reporter, ReportRequest
from interlock_history.cli.ingest import (
    RunOptions,
    Store,
    echo_history,
    identify,
    open_store,
)
from interlock_history.settings import read_history_settings
from interlock_rca.analyze import write_report
from interlock_rca.ci_run import parse_variant

if TYPE_CHECKING:
    from interlock_rca.ci_run import CiRun

_SHOWN = 20


class CommentMode(StrEnum):
    """When a pull request gets a comment."""

    OFF = "off"
    FAILURES = "failures"
    ALWAYS = "always"


class FailMode(StrEnum):
    """Which failures end the command with 1."""

    NEW = "new"
    ANY = "any"
    UNQUARANTINED = "unquarantined"
    NONE = "none"


Results = Annotated[
    list[str] | None,
    typer.Argument(metavar="[RESULTS]...", help="JUnit XML: files, folders, globs or zips."),
]
Legs = Annotated[
    list[Path] | None,
    typer.Option("--legs", metavar="DIR", help="What another job ingested; repeatable."),
]
EvidenceReports = Annotated[
    list[str] | None,
    typer.Option(
        "--evidence",
        metavar="RESULTS",
        help="Reports that other jobs ingested: only for causes, not counted; repeatable.",
    ),
]
ExpectShards = Annotated[
    int, typer.Option("--expect-shards", metavar="N", min=0, help="So many jobs must report.")
]
ExpectVariants = Annotated[
    list[str] | None,
    typer.Option(
        "--expect-variant",
        metavar="NAME=VALUE",
        help="Some job with this variant must report; repeatable.",
    ),
]
FailOnFlag = Annotated[FailMode, typer.Option("--fail-on", help="Which failures end with exit 1.")]
Commenting = Annotated[
    CommentMode, typer.Option("--comment", help="When to comment on a pull request.")
]
Annotations = Annotated[
    int, typer.Option("--annotations", metavar="N", min=0, max=50, help="At most so many.")
]
CheckName = Annotated[
    str, typer.Option("--check-name", metavar="NAME", help="Also make a GitHub check run.")
]
Title = Annotated[str, typer.Option("--title", metavar="TEXT", help="Of comment and summary.")]
Repos = Annotated[
    list[str] | None,
    typer.Option("--repo", metavar="[NAME=]PATH[:PURPOSE]", help="As for analyze."),
]
LastGreen = Annotated[
    list[str] | None,
    typer.Option("--last-green", metavar="[REPO=]REV", help="As for analyze; default auto."),
]
Out = Annotated[Path, typer.Option("--out", metavar="DIR", help="The folder of report and texts.")]


@app.command()
@expand_options("which", RunOptions)
def ci(
    *,
    results: Results = None,
    legs: Legs = None,
    evidence: EvidenceReports = None,
    expect_shards: ExpectShards = 0,
    expect_variant: ExpectVariants = None,
    fail_on: FailOnFlag = FailMode.NONE,
    comment: Commenting = CommentMode.FAILURES,
    annotations: Annotations = 10,
    check_name: CheckName = "",
    title: Title = "Test results",
    repo: Repos = None,
    last_green: LastGreen = None,
    which: RunOptions,
    out: Out = Path("interlock-report/ci"),
    store: Store = None,
    db: Db = None,
    json: Json = False,
) -> None:
    """Report the results of a CI run: ingest, analyse, publish. Its own problems are warnings and
    never fail the build. Exits with 1 if --fail-on says so, and with 3 without results."""
    settings = read_history_settings()
    who, problems = identify(settings, which), list[str]()
    request = ReportRequest(
        run=who,
        results=tuple(results or ()),
        legs=tuple(legs or ()),
        evidence=tuple(evidence or ()),
        repos=tuple(repo or (".",)),
        last_green=tuple(last_green or ("auto",)),
        expected=ExpectedJobs(
            shards=expect_shards,
            variants=tuple(pair for each in expect_variant or () for pair in parse_variant(each)),
            every_known=bool(legs),
        ),
    )
    reporter = Reporter(settings, lambda text: echo_note(defuse(text)), problems)
    with reporter.open_memory(lambda: open_store(store, settings)) as memory:
        started = not memory.list_segments()
        digest, findings = reporter.judge_run(request, open_project(db), memory)
    if digest is None:
        _refuse_nothing(problems)
    if findings:
        write_report(findings, out / "report")
    outputs = _list_outputs(digest, out, "started" if started else "ok")
    publication = _build_publication(digest, title, out, annotations, outputs)
    say = echo_note if json else echo
    problems += publish(
        publication, os.environ, say, provider=who.provider, comment=comment.value, check=check_name
    )
    _show(digest, publication, problems, json=json)
    if digest.is_refused(_GATES[fail_on]):
        raise typer.Exit(ExitCode.FAILED)


def _build_publication(
    digest: Digest,
    title: str,
    out: Path,
    annotations: int,
    outputs: dict[str, str],
) -> Publication:
    links = _make_links(digest.run)
    return Publication(
        digest=digest,
        title=title,
        comment=render_comment(digest, title=title, links=links),
        summary=render_summary(digest, title=title, links=links),
        annotations=tuple(find_annotations(digest, Path(), annotations)),
        outputs=outputs,
        folder=out,
    )


def _refuse_nothing(problems: list[str]) -> NoReturn:
    for problem in problems:
        echo_note(f"warning: {defuse(problem)}")
    echo_note("interlock: no results: name JUnit files, or folders of other jobs with --legs")
    raise typer.Exit(ExitCode.UNHEALTHY)


_GATES: dict[FailMode, FailOn] = {
    FailMode.NEW: "new",
    FailMode.ANY: "any",
    FailMode.UNQUARANTINED: "unquarantined",
    FailMode.NONE: "none",
}


def _make_links(run: "CiRun") -> Links:
    server = os.environ.get("GITHUB_SERVER_URL" if run.provider == "github" else "CI_SERVER_URL")
    if not server or not run.project:
        return Links()
    middle = "commit" if run.provider == "github" else "-/commit"
    place = f"{server.rstrip('/')}/{run.project}/{middle}/".replace("{", "").replace("}", "")
    return Links(commit=place + "{}")


def _list_outputs(digest: Digest, out: Path, store_status: str) -> dict[str, str]:
    new_causes = sum(each.word == "new" for each in digest.causes)
    return {
        "verdict": digest.verdict,
        "new-causes": str(new_causes),
        "new-failures": str(digest.count("new")),
        "known": str(digest.count("still failing")),
        "flaky": str(digest.count("flaky")),
        "failed": str(len(digest.failures)),
        "baseline": digest.baseline,
        "report-path": str(out / "report" / "report.html") if digest.causes else "",
        "summary-file": str(out / SUMMARY_FILE),
        "comment-file": str(out / COMMENT_FILE),
        "store-status": store_status,
    }


def _show(digest: Digest, publication: Publication, problems: list[str], *, json: bool) -> None:
    for problem in problems:
        echo_note(f"warning: {defuse(problem)}")
    if json:
        fields = {name.replace("-", "_"): text for name, text in publication.outputs.items()}
        rows = {"failures": digest.failures, "fixed": digest.fixed, "problems": problems}
        missing = {"missing_shards": digest.missing_shards, "tests": digest.tests}
        echo_history(fields | rows | missing)
        return
    # Names of tests are hostile: a line of ours could look like a command to the CI system.
    guard = secrets.token_hex(16) if digest.run.provider == "github" else ""
    if guard:
        echo(f"::stop-commands::{guard}")
    echo(format_headline(digest).replace("**", ""))
    for each in digest.failures[:_SHOWN]:
        echo(defuse(f"  {each.word}: {each.test} ({each.why})"))
    if len(digest.failures) > _SHOWN:
        echo(f"  and {len(digest.failures) - _SHOWN:,} more in {publication.folder / SUMMARY_FILE}")
    for cause in digest.causes:
        if cause.word == "new" and cause.cause.suspects:
            first = cause.cause.suspects[0]
            subject = defuse(format_line(first.subject))
            echo(f"  suspect {first.commit[:10]} ({first.score:.2f}) {subject}")
    if guard:
        echo(f"::{guard}::")
