"""Render the digest as Markdown: a short text for a pull request's comment, a longer one for a
job's summary.

The first line says what most readers want. Names, messages and logs are hostile: they are escaped
or fenced, so mentions and links in them do nothing. A text that would be too long drops whole
sections from its end and says how many.
"""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import msgspec

from interlock.system.text import (
    clean_text,
    clip_text,
    escape_markdown,
    format_code,
    format_fence,
    format_link,
    plural,
    replace_unencodable,
)
from interlock.system.time import format_day, format_timestamp
from interlock_history.ci.digest import WORDS, Digest, DigestCause, DigestTest, Word
from interlock_history.verdicts import Moment
from interlock_rca.report.words import KINDS

COMMENT_LIMIT: Final = 65_536
"""GitHub's limit in characters for a comment; GitLab allows more."""
SUMMARY_LIMIT: Final = 1_048_576
"""GitHub's limit in bytes for one step's summary."""
_ROOM: Final = 2_000
"""Characters kept free for the text after the sections."""
_TESTS: Final = 10
_SHOWN_WHOLE: Final[tuple[Word, ...]] = ("new", "infrastructure")
"""Words whose failures are never folded."""
_EXCERPT: Final = 1_500


def make_marker(name: str) -> str:
    """Return the invisible marker by which the comment of a check is found."""
    return f"<!-- interlock:{hashlib.sha256(name.encode()).hexdigest()[:16]} -->"


class Links(msgspec.Struct, frozen=True):
    """Addresses of commits and of the report; an empty address makes no link."""

    commit: str = ""
    """An address with {} in place of the hash."""
    report: str = ""

    def format_commit(self, commit: str) -> str:
        short = format_code(commit[:10])
        return format_link(short, self.commit.format(commit)) if self.commit and commit else short


def format_headline(digest: Digest) -> str:
    """Return a line such as: **2 new causes (7 tests)**, 1 still failing, 1 flaky; 92 of 98 passed
    · commit abc, attempt 2."""
    parts = []
    for word in WORDS:
        number = digest.count(word)
        causes = sum(each.word == word for each in digest.causes)
        text = f"{number:,} {word}"
        if number and causes and word in _SHOWN_WHOLE:
            noun = plural(causes, f"{word} cause", f"{word} causes")
            text = f"{noun} ({plural(number, 'test', 'tests')})"
        if number:
            parts.append(f"**{text}**" if word in _SHOWN_WHOLE else text)
    if digest.fixed:
        parts.append(f"{len(digest.fixed):,} fixed")
    if digest.missing_shards:
        parts.insert(0, f"**incomplete**: no results of {_list_missing(digest)}")
    passed = f"{digest.passed:,} of {plural(digest.tests, 'test', 'tests')} passed"
    if not digest.failures:
        passed = f"{plural(digest.passed, 'test', 'tests')} passed"
    return "; ".join(filter(None, [", ".join(parts), passed])) + " · " + _format_run(digest)


def _list_missing(digest: Digest) -> str:
    shown = digest.missing_shards[:_TESTS]
    more = len(digest.missing_shards) - len(shown)
    words = ", ".join(escape_markdown(each, 100) for each in shown)
    return f"{words} and {more:,} more" if more else words


def render_comment(digest: Digest, *, title: str, links: Links) -> str:
    """Return the text of a pull request's comment, folded when nothing needs attention."""
    sections = _list_sections(digest, links, with_excerpts=False)
    head = f"{make_marker(title)}\n{_format_head(digest, title)}"
    return _join_sections(head, sections, _format_foot(digest), links, COMMENT_LIMIT, len)


def render_summary(digest: Digest, *, title: str, links: Links) -> str:
    """Return the text of a job's summary: the comment's, plus the output of each cause's
    failures."""
    sections = _list_sections(digest, links, with_excerpts=True)
    head = _format_head(digest, title)
    return _join_sections(
        head,
        sections,
        _format_foot(digest),
        links,
        SUMMARY_LIMIT,
        lambda text: len(text.encode()),
    )


def _join_sections(
    head: str,
    sections: Sequence[str],
    foot: str,
    links: Links,
    limit: int,
    measure: Callable[[str], int],
) -> str:
    spent = measure(head) + measure(foot) + _ROOM
    kept: list[str] = []
    for section in sections:
        spent += measure(section) + 2
        if spent > limit:
            left = len(sections) - len(kept)
            rest = f"*{plural(left, 'more section', 'more sections')} left out here.*"
            kept.append(" ".join(filter(None, [rest, format_link("Whole report", links.report)])))
            break
        kept.append(section)
    return replace_unencodable("\n\n".join([head, *kept, foot])) + "\n"


def _format_head(digest: Digest, title: str) -> str:
    sign = "✅" if digest.is_green else "❌" if digest.is_refused("unquarantined") else "⚠️"
    return f"### {sign} {escape_markdown(title, 120)}\n\n{format_headline(digest)}"


def _list_sections(digest: Digest, links: Links, *, with_excerpts: bool) -> list[str]:
    grouped = {(each.label, each.test) for cause in digest.causes for each in cause.tests}
    has_jobs = len({each.label for each in digest.failures}) > 1
    sections = [
        _format_cause(each, links, with_excerpts=with_excerpts, has_jobs=has_jobs)
        for each in digest.causes
        if each.word in _SHOWN_WHOLE
    ]
    for word in WORDS:
        causes = [each for each in digest.causes if each.word == word and word not in _SHOWN_WHOLE]
        loose = [
            each
            for each in digest.failures
            if each.word == word and (each.label, each.test) not in grouped
        ]
        if causes or loose:
            sections.append(_format_group(word, causes, loose, links, has_jobs=has_jobs))
    if digest.fixed:
        rows = [f"- {format_code(test)}" for test in digest.fixed[:_TESTS]]
        sections.append(_fold(f"{len(digest.fixed):,} fixed", [*rows, *_count_rest(digest.fixed)]))
    return sections


def _format_cause(each: DigestCause, links: Links, *, with_excerpts: bool, has_jobs: bool) -> str:
    cause = each.cause
    count = plural(len(each.tests), "test", "tests")
    passes = {_format_moment(test.last_pass, links) for test in each.tests if test.last_pass}
    facts = [f"**{each.word}**", KINDS[cause.kind].one, count]
    facts += [f"last passed on {passes.copy().pop()}"] if len(passes) == 1 else []
    lines = [
        f"#### {escape_markdown(cause.title, 160)}",
        f"{', '.join(facts)}  \n{_format_suspect(each, links)}",
    ]
    one_by_one = {"has_jobs": has_jobs, "has_pass": len(passes) != 1}
    rows = [f"- {_format_test(test, links, **one_by_one)}" for test in each.tests[:_TESTS]]
    lines.append("\n".join([*rows, *_count_rest(each.tests)]))
    if with_excerpts and (excerpt := _find_excerpt(each)):
        lines.append(format_fence(clip_text(clean_text(excerpt), _EXCERPT)[0]))
    return "\n\n".join(lines)


def _format_suspect(each: DigestCause, links: Links) -> str:
    """Return a line that names the commit to look at first, or says that there is none."""
    if not each.cause.suspects:
        return "No commit is suspected."
    first = each.cause.suspects[0]
    who = f", {escape_markdown(first.author, 60)}" if first.author else ""
    sure = f" ({first.score:.0%} sure)" if first.score else ""
    what = f" {escape_markdown(first.subject, 120)}" if first.subject else ""
    reasons = first.why.split("; ")
    why = f": {escape_markdown(reasons[0], 200)}" if reasons[0] else ""
    return f"**Suspect** {links.format_commit(first.commit)}{what}{who}{sure}{why}"


def _find_excerpt(each: DigestCause) -> str:
    """Return the output of a cause's failure: its stack, or else its excerpt."""
    stacks = (case.stack or case.excerpt for case in each.cause.cases)
    return next(filter(None, stacks), "") or next(
        (test.excerpt for test in each.tests if test.excerpt), ""
    )


def _format_group(
    word: Word,
    causes: Sequence[DigestCause],
    loose: Sequence[DigestTest],
    links: Links,
    *,
    has_jobs: bool,
) -> str:
    rows = []
    for each in causes:
        rows.append(f"- {escape_markdown(each.cause.title, 160)}")
        rows += [f"  - {_format_suspect(each, links)}"] if each.cause.suspects else []
        tests = each.tests[:_TESTS]
        rows += [f"  - {_format_test(test, links, has_jobs=has_jobs)}" for test in tests]
        rows += [f"  {row}" for row in _count_rest(each.tests)]
    shown = loose[: 3 * _TESTS]
    rows += [f"- {_format_test(each, links, has_jobs=has_jobs)}" for each in shown]
    rows += _count_rest(loose, 3 * _TESTS)
    number = len(loose) + sum(len(each.tests) for each in causes)
    if word in _SHOWN_WHOLE:
        return "\n".join([f"#### {word.capitalize()}, no cause found", "", *rows])
    return _fold(f"{number:,} {word}", rows)


def _format_test(
    each: DigestTest,
    links: Links,
    *,
    has_jobs: bool,
    has_pass: bool = True,
) -> str:
    parts = [format_code(each.test)]
    if each.label and has_jobs:
        parts.append(escape_markdown(each.label, 80))
    if each.since:
        age = plural(each.age, "source", "sources")
        parts.append(f"failing since {_format_moment(each.since, links)} for {age}")
    elif has_pass or not each.last_pass:
        parts.append(escape_markdown(each.why))
    if each.last_pass and has_pass and each.word in ("new", "still failing"):
        parts.append(f"last passed on {_format_moment(each.last_pass, links)}")
    return ", ".join(parts)


def _format_moment(moment: Moment, links: Links) -> str:
    day = format_day(format_timestamp(moment.at)) if moment.at else ""
    commit = links.format_commit(moment.commit) if moment.commit else ""
    return f"{commit} ({day})" if commit and day else commit or day


def _format_foot(digest: Digest) -> str:
    compared = (
        f"Compared with {escape_markdown(digest.baseline, 120)}"
        if digest.baseline
        else "No earlier results are known: history starts here"
    )
    counts = [compared]
    counts += [f"{digest.skipped:,} skipped"] if digest.skipped else []
    counts += [f"{digest.absent:,} not run"] if digest.absent else []
    lines = [f"<sub>{'; '.join(counts)}.</sub>"]
    if digest.notes:
        rows = [f"- {escape_markdown(note, 300)}" for note in digest.notes[:_TESTS]]
        lines.append(_fold("Notes", [*rows, *_count_rest(digest.notes)]))
    return "\n\n".join(lines)


def _format_run(digest: Digest) -> str:
    run = digest.run
    commit = (run.head or run.commit)[:10]
    parts = [f"commit {commit}"] if commit else []
    parts += [f"attempt {run.attempt}"] if run.attempt > 1 else []
    return ", ".join(parts) or run.provider


def _fold(title: str, rows: Iterable[str]) -> str:
    body = "\n".join(rows)
    return f"<details><summary>{title}</summary>\n\n{body}\n\n</details>"


def _count_rest(items: Sequence[object], shown: int = _TESTS) -> list[str]:
    return [f"- and {len(items) - shown:,} more"] if len(items) > shown else []
