"""The digest as Markdown: one text for a pull request's comment, a longer one for a job's summary.

Line 1 says all that most readers want. Names, messages and logs are hostile: they are escaped or
fenced, mentions and links in them do nothing. A text that would be too long leaves out whole
sections from the end and says how many.
"""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import msgspec

from interlock.rca.ci.digest import WORDS, Digest, DigestCause, DigestTest, Word
from interlock.rca.history.verdicts import Moment
from interlock.rca.report.words import KINDS
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

COMMENT_LIMIT: Final = 65_536
"""Characters that a comment on GitHub may have; GitLab takes more."""
SUMMARY_LIMIT: Final = 1_048_576
"""Bytes that GitHub shows of one step's summary."""
_ROOM: Final = 2_000
"""Kept free for what comes after the sections."""
_TESTS: Final = 10
_EXCERPT: Final = 1_500


def make_marker(name: str) -> str:
    """What the comment of a check is found by; nobody sees it."""
    return f"<!-- interlock:{hashlib.sha256(name.encode()).hexdigest()[:16]} -->"


class Links(msgspec.Struct, frozen=True):
    """Where commits and the report can be looked at; empty parts are no links."""

    commit: str = ""
    """With {} for the hash."""
    report: str = ""

    def format_commit(self, commit: str) -> str:
        short = format_code(commit[:10])
        return format_link(short, self.commit.format(commit)) if self.commit and commit else short


def format_headline(digest: Digest) -> str:
    """Such as: 2 new causes (7 tests), 1 still failing, 1 flaky · commit abc, attempt 2."""
    parts = []
    for word in WORDS:
        number = digest.count(word)
        causes = sum(each.word == word for each in digest.causes)
        if number and causes and word != "flaky":
            noun = plural(causes, f"{word} cause", f"{word} causes")
            parts.append(f"{noun} ({plural(number, 'test', 'tests')})")
        elif number:
            parts.append(f"{number:,} {word}")
    if digest.fixed:
        parts.append(f"{len(digest.fixed):,} fixed")
    if not digest.failures:
        parts.insert(0, f"{plural(digest.passed, 'test', 'tests')} passed")
    if digest.missing_shards:
        parts.append(f"**incomplete**: no results of {', '.join(digest.missing_shards)}")
    return ", ".join(parts) + " · " + _format_run(digest)


def render_comment(digest: Digest, *, title: str, links: Links) -> str:
    """The text of a pull request's comment. Folded when nothing needs attention."""
    sections = _list_sections(digest, links, with_excerpts=False)
    return _join_sections(digest, title, links, sections, COMMENT_LIMIT, len)


def render_summary(digest: Digest, *, title: str, links: Links) -> str:
    """The text of a job's summary: the comment's, with what each cause's failures printed."""
    sections = _list_sections(digest, links, with_excerpts=True)
    return _join_sections(
        digest, title, links, sections, SUMMARY_LIMIT, lambda text: len(text.encode())
    )


def _join_sections(
    digest: Digest,
    title: str,
    links: Links,
    sections: Sequence[str],
    limit: int,
    measure: Callable[[str], int],
) -> str:
    head = f"{make_marker(title)}\n### {escape_markdown(title, 120)}\n\n{format_headline(digest)}"
    foot = _format_foot(digest, links)
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


def _list_sections(digest: Digest, links: Links, *, with_excerpts: bool) -> list[str]:
    grouped = {(each.label, each.test) for cause in digest.causes for each in cause.tests}
    sections = [
        _format_cause(each, links, with_excerpts=with_excerpts)
        for each in digest.causes
        if each.word in ("new", "infrastructure")
    ]
    for word in WORDS:
        causes = [each for each in digest.causes if each.word == word]
        if word in ("new", "infrastructure"):
            causes = []
        loose = [
            each
            for each in digest.failures
            if each.word == word and (each.label, each.test) not in grouped
        ]
        if causes or loose:
            sections.append(_format_group(word, causes, loose, links))
    if digest.fixed:
        rows = [f"- {format_code(test)}" for test in digest.fixed[:_TESTS]]
        sections.append(_fold(f"{len(digest.fixed):,} fixed", [*rows, *_count_rest(digest.fixed)]))
    return sections


def _format_cause(each: DigestCause, links: Links, *, with_excerpts: bool) -> str:
    cause = each.cause
    count = plural(len(each.tests), "test", "tests")
    kind = KINDS[cause.kind].one
    lines = [f"#### {escape_markdown(cause.title, 160)}", f"{each.word}, {kind}, {count}"]
    rows = [f"- {_format_test(test, links)}" for test in each.tests[:_TESTS]]
    rows += _count_rest(each.tests)
    if cause.suspects:
        first = cause.suspects[0]
        who = f" by {escape_markdown(first.author, 60)}" if first.author else ""
        why = f": {escape_markdown(first.why, 200)}" if first.why else ""
        sure = f", confidence {first.score:.2f}" if first.score else ""
        rows.append(
            f"- suspect {links.format_commit(first.commit)}{who}{sure}"
            f" ({escape_markdown(first.subject, 120)}){why}"
        )
    lines.append("\n".join(rows))
    excerpt = next((test.excerpt for test in each.tests if test.excerpt), "")
    if with_excerpts and excerpt:
        lines.append(format_fence(clip_text(clean_text(excerpt), _EXCERPT)[0]))
    return "\n\n".join(lines)


def _format_group(
    word: Word, causes: Sequence[DigestCause], loose: Sequence[DigestTest], links: Links
) -> str:
    rows = []
    for each in causes:
        count = plural(len(each.tests), "test", "tests")
        rows.append(f"- {escape_markdown(each.cause.title, 160)} ({count})")
        rows += [f"  - {_format_test(test, links)}" for test in each.tests[:_TESTS]]
    rows += [f"- {_format_test(each, links)}" for each in loose[: 3 * _TESTS]]
    rows += _count_rest(loose, 3 * _TESTS)
    number = len(loose) + sum(len(each.tests) for each in causes)
    if word == "new":
        return "\n".join(["#### New, no cause found", "", *rows])
    return _fold(f"{number:,} {word}", rows)


def _format_test(each: DigestTest, links: Links) -> str:
    parts = [format_code(each.test)]
    if each.label:
        parts.append(escape_markdown(each.label, 80))
    if each.since:
        age = plural(each.age, "commit", "commits")
        parts.append(f"failing since {_format_moment(each.since, links)} ({age})")
    else:
        parts.append(escape_markdown(each.why))
    if each.last_pass and each.word in ("new", "still failing"):
        parts.append(f"last pass {_format_moment(each.last_pass, links)}")
    return ", ".join(parts)


def _format_moment(moment: Moment, links: Links) -> str:
    day = format_day(format_timestamp(moment.at)) if moment.at else ""
    return " on ".join(filter(None, [links.format_commit(moment.commit), day]))


def _format_foot(digest: Digest, links: Links) -> str:
    compared = (
        f"compared with {escape_markdown(digest.baseline, 120)}"
        if digest.baseline
        else "no earlier results are known: history starts here"
    )
    counts = [plural(digest.tests, "result", "results"), f"{digest.passed:,} passed"]
    counts += [f"{digest.skipped:,} skipped"] if digest.skipped else []
    counts += [f"{digest.absent:,} not run"] if digest.absent else []
    lines = [f"<sub>{', '.join(counts)}; {compared}</sub>"]
    lines += [f"<sub>{escape_markdown(note, 300)}</sub>" for note in digest.notes[:5]]
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
