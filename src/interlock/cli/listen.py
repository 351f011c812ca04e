"""The verb that reads reviewers' comments: listen."""

import os
import time
from typing import Annotated

import typer

from interlock.cli.app import app
from interlock.cli.ingest import ProjectName, RunOptions, Store, echo_history, identify, open_store
from interlock.cli.output import Db, Json, echo, echo_note, open_project
from interlock.rca.ci.forge import open_forge
from interlock.rca.ci.listen import CommentReader
from interlock.rca.ci.publish import defuse
from interlock.rca.history.identity import find_commented_pull
from interlock.rca.history.settings import read_history_settings
from interlock.system.errors import SourceError, StoreError, UsageError
from interlock.system.retry import TransientError
from interlock.system.text import plural


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
