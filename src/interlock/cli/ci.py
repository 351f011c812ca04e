"""The verbs for pipelines: ci, and listen, which reads reviewers' comments."""

import os
import secrets
import time
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from interlock.cli.app import ExitCode, app
from interlock.cli.ingest import (
    ProjectName,
    RunOptions,
    Store,
    echo_history,
    identify,
    open_store,
)
from interlock.cli.options import expand_options
from interlock.cli.output import Db, Json, echo, echo_note, open_project
from interlock.rca.analyze import write_report
from interlock.rca.ci.digest import Digest, FailOn
from interlock.rca.ci.forge import open_forge
from interlock.rca.ci.listen import CommentReader, read_reviewers
from interlock.rca.ci.publish import (
    COMMENT_FILE,
    SUMMARY_FILE,
    Publication,
    defuse,
    find_annotations,
    publish,
)
from interlock.rca.ci.render import Links, format_headline, render_comment, render_summary
from interlock.rca.ci.run import Reporter, ReportRequest
from interlock.rca.history.identity import find_commented_pull, parse_variant
from interlock.rca.history.settings import read_history_settings
from interlock.rca.history.statements import unite_statements
from interlock.system.errors import SourceError, StoreError, UsageError
from interlock.system.retry import TransientError
from interlock.system.text import format_line, plural

if TYPE_CHECKING:
    from collections.abc import Sequence

    from interlock.rca.history.identity import CiRun
    from interlock.rca.history.statements import Statement

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
    """Report the results of a CI run: ingest, analyse, publish. Trouble of its own is a warning and
    never fails the build. Exit 1 if --fail-on says so, 3 if there are no results."""
    settings = read_history_settings()
    who, problems = identify(settings, which), list[str]()
    request = ReportRequest(
        run=who,
        results=tuple(results or ()),
        legs=tuple(legs or ()),
        evidence=tuple(evidence or ()),
        repos=tuple(repo or (".",)),
        last_green=tuple(last_green or ("auto",)),
        expected_shards=expect_shards,
        expected_variants=tuple(
            pair for each in expect_variant or () for pair in parse_variant(each)
        ),
    )
    reporter = Reporter(settings, lambda text: echo_note(defuse(text)), problems)
    with reporter.open_memory(lambda: open_store(store, settings)) as memory:
        started = not memory.list_segments()
        database = open_project(db)
        with_comments = comment is not CommentMode.OFF
        statements = read_reviewers(who, memory, database, problems) if with_comments else ()
        said = unite_statements(memory.read_statements().every, statements)
        digest, findings = reporter.judge_run(request, database, memory, said)
    if digest is None:
        _refuse_nothing(problems)
    if findings:
        write_report(findings, out / "report")
    outputs = _list_outputs(digest, out, "started" if started else "ok")
    publication = _build_publication(digest, title, out, annotations, outputs, statements)
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
    statements: "Sequence[Statement]",
) -> Publication:
    links = _make_links(digest.run)
    return Publication(
        digest=digest,
        title=title,
        comment=render_comment(digest, title=title, links=links, statements=statements),
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
    # Names of tests are hostile: a line of ours may look like a command to the CI system.
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


@app.command()
def listen(
    pr: Annotated[
        str,
        typer.Option("--pr", metavar="N", help="Only this one; else the event's, or all of late."),
    ] = "",
    project: ProjectName = "",
    store: Store = None,
    db: Db = None,
    json: Json = False,
) -> None:
    """Take what reviewers say about reports in pull requests: /interlock not-this, flaky, cause N,
    undo. Comments are read from GitHub or GitLab itself, and each is acknowledged once. Run it with
    the default branch's code, when somebody comments."""
    settings = read_history_settings()
    run = identify(settings, RunOptions(project=project))
    if pr and not (pr.isdecimal() and len(pr) <= 12):
        raise UsageError(f"--pr {pr!r}: write the number of a pull request")
    if run.scope == "pull-request":
        raise UsageError(
            "this job runs a pull request's code, so nothing that it reads can be kept: "
            "'interlock ci' reads the comments there"
        )
    forge = open_forge(run.provider, os.environ, run.project)
    if forge is None:
        raise UsageError("comments are read on GitHub and GitLab, from a job that runs there")
    problems: list[str] = []
    counts = {"pull_requests": 0, "taken": 0, "asked_back": 0, "answered": 0}
    said: list[str] = []
    try:
        reader = CommentReader(
            forge, run.project, open_store(store, settings), open_project(db), problems
        )
        wanted = pr or find_commented_pull(os.environ)
        read = [(wanted, reader.read(wanted))] if wanted else reader.read_repository(time.time())
        for number, found in read:
            counts["answered"] += reader.keep(number, found)
            counts["pull_requests"] += 1
            counts["taken"] += len(found.new)
            counts["asked_back"] += found.replies
            said += [each.describe() for each in found.new]
    except (SourceError, StoreError) as error:
        # A comment must not turn a pipeline red because its server is busy; the next run reads it.
        problems.append(str(error))
    except TransientError as error:
        problems.append(f"the server {error.reason}")
    finally:
        forge.close()
    for problem in problems:
        echo_note(f"warning: {defuse(problem)}")
    if json:
        echo_history({**counts, "said": said, "problems": problems})
        return
    for line in said:
        echo(defuse(line))
    where = plural(counts["pull_requests"], "pull request")
    asked = plural(counts["asked_back"], "comment")
    echo(f"{plural(counts['taken'], 'statement')} taken in {where}, {asked} asked back")
