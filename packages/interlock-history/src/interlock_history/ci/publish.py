"""Publish the digest where people look: summaries, comments, annotations, outputs and files.

Each place is a function that may fail alone: a failure is reported and never turns a build red.
Limits of each place are respected here; `render` writes the texts. Tokens come from the environment
only.
"""

import os
import re
import secrets
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Final, Literal

import msgspec

from interlock.system.errors import SourceError
from interlock.system.files import write_file
from interlock.system.github import GithubRest, github_address
from interlock.system.retry import TransientError
from interlock.system.text import clean_text, format_line
from interlock_history.ci.digest import Digest
from interlock_history.ci.forge import open_forge
from interlock_history.ci.render import SUMMARY_LIMIT, make_marker
from interlock_rca.test_names import make_test_id

SUMMARY_FILE: Final = "ci-summary.md"
COMMENT_FILE: Final = "ci-comment.md"
QUALITY_FILE: Final = "gl-code-quality-report.json"
CONTEXT: Final = "interlock"
CommentMode = Literal["off", "failures", "always"]
"""When a pull request gets a first comment; an existing comment is always updated, unless `off`."""
_ANNOTATE_S: Final = 60
_COMMAND: Final = re.compile(r"##(?=\w*\[)")
_PLACES: Final = (
    re.compile(r'File "(?P<path>[^"\n]{1,300})", line (?P<line>\d{1,7})'),
    re.compile(r"(?P<path>[\w./@+-]{1,300}\.\w{1,8}):(?P<line>\d{1,7})\b"),
)


class Annotation(msgspec.Struct, frozen=True, kw_only=True):
    """A failure at a line of the checkout."""

    path: str
    line: int
    title: str
    text: str
    is_new: bool
    fingerprint: str


class Publication(msgspec.Struct, frozen=True, kw_only=True):
    """Everything to publish, in all its forms."""

    digest: Digest
    title: str
    comment: str
    summary: str
    annotations: tuple[Annotation, ...]
    outputs: Mapping[str, str]
    folder: Path


def find_annotations(digest: Digest, checkout: Path, most: int) -> Iterator[Annotation]:
    """Yield, for each failure that is not excused, the last place in its stack that lies inside the
    checkout."""
    stacks = {
        make_test_id(suite, case.class_name, case.test_name): (case.error, case.stack)
        for each in digest.causes
        for case in each.cause.cases
        for suite in ("", case.job)
    }
    for each in digest.failures:
        if most <= 0 or each.word not in ("new", "still failing"):
            continue
        message, stack = stacks.get(each.test, ("", ""))
        place = _find_place(stack or each.excerpt, checkout)
        if place is not None:
            most -= 1
            yield Annotation(
                path=place[0],
                line=place[1],
                title=format_line(f"{each.word}: {each.test}", 200),
                text=clean_text(message or each.excerpt or each.test)[:2000],
                is_new=each.word == "new",
                fingerprint=each.fingerprint,
            )


def _find_place(text: str, checkout: Path) -> tuple[str, int] | None:
    root = checkout.resolve()
    for pattern in _PLACES:
        for found in reversed(list(pattern.finditer(text))):
            path = Path(found["path"])
            try:
                real = (path if path.is_absolute() else root / path).resolve()
                if real.is_relative_to(root) and real.is_file():
                    return str(PurePosixPath(real.relative_to(root))), int(found["line"])
            except (OSError, ValueError):
                continue
    return None


def publish(
    publication: Publication,
    environ: Mapping[str, str],
    say: Callable[[str], None],
    *,
    provider: str,
    comment: CommentMode,
    check: str = "",
) -> list[str]:
    """Publish to every place that this CI system has; return a sentence for each that failed. `say`
    prints a line that the CI system obeys."""
    places: list[Callable[[], None]] = [lambda: _write_files(publication)]
    if provider == "github":
        places += [
            lambda: _add_summary(publication, environ),
            lambda: _print_annotations(publication, say),
            lambda: write_outputs(publication.outputs, environ),
        ]
        if check:
            places.append(lambda: _create_check(publication, environ, check))
    elif provider == "azure":
        places.append(lambda: _tell_azure(publication, say))
    elif provider == "buildkite":
        places.append(lambda: _annotate_buildkite(publication, environ))
    if provider in ("github", "gitlab") and comment != "off" and publication.digest.run.pr:
        places.append(lambda: _comment(publication, provider, environ, comment))
    problems = []
    for place in places:
        try:
            place()
        except (SourceError, OSError) as error:
            problems.append(format_line(str(error), 400))
        except TransientError as error:
            problems.append(f"the server {error.reason}")
    return problems


def _write_files(publication: Publication) -> None:
    folder = publication.folder
    folder.mkdir(parents=True, exist_ok=True)
    quality = msgspec.json.encode(
        [
            {
                "description": format_line(f"{each.title}: {each.text}", 1000),
                "check_name": CONTEXT,
                "fingerprint": each.fingerprint or f"{each.path}:{each.line}:{each.title}",
                "severity": "major" if each.is_new else "minor",
                "location": {"path": each.path, "lines": {"begin": each.line}},
            }
            for each in publication.annotations
        ]
    )
    for name, raw in (
        (SUMMARY_FILE, publication.summary.encode()),
        (COMMENT_FILE, publication.comment.encode()),
        (QUALITY_FILE, quality),
    ):
        write_file(folder / name, raw, sync=False, mode=0o666)


def _add_summary(publication: Publication, environ: Mapping[str, str]) -> None:
    path = environ.get("GITHUB_STEP_SUMMARY")
    if not path:
        return
    raw = publication.summary.encode()
    with Path(path).open("ab") as file:
        if file.tell() + len(raw) > SUMMARY_LIMIT:
            raise SourceError(
                "the job summary is full: GitHub shows 1 MiB of a step; the text is in "
                f"{publication.folder / SUMMARY_FILE}"
            )
        file.write(raw + b"\n")


def _print_annotations(publication: Publication, say: Callable[[str], None]) -> None:
    for each in publication.annotations:
        kind = "error" if each.is_new else "warning"
        properties = {"file": each.path, "line": str(each.line), "title": each.title}
        words = ",".join(f"{name}={_escape_property(text)}" for name, text in properties.items())
        say(f"::{kind} {words}::{_escape_command(each.text)}")


def _escape_command(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _escape_property(text: str) -> str:
    return _escape_command(text).replace(":", "%3A").replace(",", "%2C")


def write_outputs(outputs: Mapping[str, str], environ: Mapping[str, str]) -> None:
    """Write the outputs for the steps that follow. A random delimiter keeps any value from ending
    early."""
    path = environ.get("GITHUB_OUTPUT")
    if not path:
        return
    lines = []
    for name, value in outputs.items():
        end = f"end-{secrets.token_hex(16)}"
        lines += [f"{name}<<{end}", value, end]
    with Path(path).open("a", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")


def _comment(
    publication: Publication, provider: str, environ: Mapping[str, str], mode: CommentMode
) -> None:
    """Create, edit or leave our one comment. Others' comments are never edited: anybody can copy
    the marker."""
    run = publication.digest.run
    forge = open_forge(provider, environ, run.project)
    if forge is None:
        return
    try:
        marker = make_marker(publication.title)
        own = (each for each in forge.list_comments(run.pr) if marker in each.body)
        found = next((each for each in own if forge.is_own(each)), None)
        if found is None and publication.digest.is_green and mode != "always":
            return
        if found is None:
            forge.create(run.pr, publication.comment)
        elif found.body.replace("\r\n", "\n").strip() != publication.comment.strip():
            forge.edit(run.pr, found.comment_id, publication.comment)
    finally:
        forge.close()


def _create_check(publication: Publication, environ: Mapping[str, str], name: str) -> None:
    run = publication.digest.run
    address = github_address(environ, repo=run.project)
    rest = GithubRest(address)
    digest = publication.digest
    failed = digest.is_refused("unquarantined")
    conclusion = "success" if digest.is_green else "failure" if failed else "neutral"
    try:
        made = rest.post(
            f"/repos/{address.repo}/check-runs",
            "check runs",
            {
                "name": name,
                "head_sha": run.head or run.commit,
                "status": "completed",
                "conclusion": conclusion,
                "output": {
                    "title": format_line(publication.title, 200),
                    "summary": publication.comment[:65_535],
                    "annotations": [
                        {
                            "path": each.path,
                            "start_line": each.line,
                            "end_line": each.line,
                            "annotation_level": "failure" if each.is_new else "warning",
                            "title": each.title,
                            "message": each.text or each.title,
                        }
                        for each in publication.annotations[:50]
                    ],
                },
            },
        )
    finally:
        rest.close()
    if not isinstance(made, dict) or "id" not in made:
        raise SourceError("GitHub gave no id for the check run")


def defuse(text: str) -> str:
    """Break commands for the agents of Azure and old GitHub runners, which obey them anywhere in a
    line."""
    return _COMMAND.sub("# #", text)


def _tell_azure(publication: Publication, say: Callable[[str], None]) -> None:
    for each in publication.annotations:
        kind = "error" if each.is_new else "warning"
        words = f"type={kind};sourcepath={_escape_azure(each.path)};linenumber={each.line}"
        text = defuse(format_line(f"{each.title}: {each.text}", 500))
        say(f"##vso[task.logissue {words}]{text}")
    say(f"##vso[task.uploadsummary]{(publication.folder / SUMMARY_FILE).resolve()}")


def _escape_azure(text: str) -> str:
    for sign, escaped in (
        ("%", "%AZP25"),
        (";", "%3B"),
        ("\r", "%0D"),
        ("\n", "%0A"),
        ("]", "%5D"),
    ):
        text = text.replace(sign, escaped)
    return text


def _annotate_buildkite(publication: Publication, environ: Mapping[str, str]) -> None:
    agent = shutil.which("buildkite-agent", path=environ.get("PATH", os.defpath))
    if agent is None:
        raise SourceError("buildkite-agent is not on the PATH: no annotation was made")
    digest = publication.digest
    style = "success" if digest.is_green else "error" if digest.count("new") else "warning"
    try:
        done = subprocess.run(  # noqa: S603 - found on the PATH, and no shell
            [agent, "annotate", "--context", CONTEXT, "--style", style],
            input=publication.summary.encode()[:SUMMARY_LIMIT],
            capture_output=True,
            timeout=_ANNOTATE_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise SourceError(f"buildkite-agent did not answer within {_ANNOTATE_S} s") from None
    if done.returncode:
        said = format_line(done.stderr.decode(errors="replace"))
        raise SourceError(f"buildkite-agent refused the annotation: {said}")
