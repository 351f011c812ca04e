"""The parts of the built-in analyst as a program: JSON lines in, JSON lines out, made for scoring.

`python -m bench.analyst VERB …`: `read` and `evidence` take one report or log; `cluster`, `recall`,
`triage` and `suspect` take failures, and print one object for each in the order of the file.
"""

import argparse
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from bench.artefacts import is_coordinate, rank_artefacts
from bench.classifier import TrainedTriage
from bench.failure_lines import read_candidates, read_failures, read_labelled
from interlock.cli.options import open_input
from interlock.cli.output import echo_note, echo_record
from interlock.system.errors import InterlockError, SourceError
from interlock.system.test_output import TestCounts
from interlock.system.test_output.counts import read_lines
from interlock_rca.analyst import evidence
from interlock_rca.analyst.cluster import find_families
from interlock_rca.analyst.mentions import collect_mentions
from interlock_rca.analyst.similarity import (
    Traits,
    compare_failures,
    compute_bands,
    extract_traits,
    list_tokens,
    score_similarity,
)
from interlock_rca.analyst.suspects import RankedSuspect, rank_candidates
from interlock_rca.analyst.triage import triage_failure
from interlock_rca.known_causes import UNSURE_THRESHOLD
from interlock_rca.records import Failure, build_failure
from interlock_rca.sources.entry import SourceEntry
from interlock_rca.sources.junit import JUnitReport
from interlock_rca.sources.log_scan import scan_log
from interlock_rca.sources.read import find_entries

JSONL = "JSONL file"


def print_evidence(file: str, good_files: Sequence[str]) -> None:
    """Print {line, text, score, why} of each line of a log that says why it failed."""

    def good_logs() -> Iterator[Iterator[str]]:
        for name in good_files:
            with open_input(name) as good:
                yield read_lines(good)

    with open_input(file) as source:
        for line in evidence.choose_evidence(read_lines(source), good_logs()):
            echo_record(line)


def print_families(file: str) -> None:
    """Print {id, family} of each failure."""
    with open_input(file, JSONL) as lines:
        known = list(read_failures(lines, file))
    for failure, family in zip(known, cluster_failures(known), strict=True):
        echo_record({"id": failure.id, "family": family})


def cluster_failures(failures: Sequence[Failure]) -> list[str]:
    """Return the name of each failure's family: the least id of its members."""
    names = [""] * len(failures)
    for members in find_families([extract_traits(failure) for failure in failures]):
        name = min(failures[member].id for member in members)
        for member in members:
            names[member] = name
    return names


def print_recalled(file: str) -> None:
    """Print {id, verdict, match_id, score, why} of each failure, against those before it."""
    with open_input(file, JSONL) as lines:
        for failure_id, found in recall_stream(read_failures(lines, file)):
            echo_record({"id": failure_id, **msgspec.structs.asdict(found)})


def print_kinds(file: str, learn: str | None) -> None:
    """Print {id, category, confidence, reasons} of each failure; `unknown` is no answer."""
    _refuse_two_stdins(file, learn)
    judge = triage_failure
    if learn:
        with open_input(learn, JSONL) as lines:
            judge = TrainedTriage(read_labelled(lines, learn)).triage
    with open_input(file, JSONL) as lines:
        for failure in read_failures(lines, file):
            echo_record({"id": failure.id, **msgspec.structs.asdict(judge(failure))})


def print_suspects(file: str, candidates: str) -> None:
    """Print {id, ranked: [{candidate, score, why}]} of each failure, best first."""
    _refuse_two_stdins(file, candidates)
    with open_input(candidates, JSONL) as lines:
        listed = read_candidates(lines, candidates)
    with open_input(file, JSONL) as lines:
        for failure in read_failures(lines, file):
            ranked = rank_suspects(failure, listed.get(failure.id, ()))
            echo_record({"id": failure.id, "ranked": ranked})


def rank_suspects(failure: Failure, candidates: Iterable[str]) -> list[RankedSuspect]:
    """Rank class names and paths as an analysis does, artefact coordinates by what a build says."""
    texts = list(candidates)
    plain = [text for text in texts if not is_coordinate(text)]
    ranked = rank_candidates(collect_mentions(failure), plain) if plain else []
    ranked += rank_artefacts(failure, [text for text in texts if is_coordinate(text)])
    return sorted(ranked, key=lambda suspect: (-suspect.score, suspect.candidate))


def print_tests(path: Path) -> None:
    """Print the failures of one report or log, and {summary} with its number of tests."""
    if path.is_dir():
        raise SourceError(f"{path} is a folder: give one file.")
    entries, _ = find_entries(str(path))
    if len(entries) != 1:
        raise SourceError(f"{path} holds {len(entries)} files: give one of them.")
    failures, counts = _read_entry(entries[0])
    for failure in failures:
        echo_record(failure)
    echo_record({"summary": counts})


def _read_entry(entry: SourceEntry) -> tuple[Iterable[Failure], TestCounts]:
    kind = entry.detect_kind()
    if kind == "binary":
        raise SourceError(f"{entry.label} is neither a report nor text.")
    with entry.open() as stream:
        if kind not in ("junit", "xml"):
            tests = scan_log(stream).tests
            return map(build_failure, tests.failures), tests.tally
        report = JUnitReport(stream, entry.name)
        failures = list(report)
    for note in report.notes:
        echo_note(note)
    return failures, report.tally


def _refuse_two_stdins(one: str, other: str | None) -> None:
    if one == other == "-":
        raise SourceError("only one of two files can be stdin; name the other")


MATCH_THRESHOLD = 0.7
"""Likeness from which it is the same."""
CERTAIN_THRESHOLD = 0.999
"""Likeness from which no nearer one is looked for: the likeliest are compared first."""


class KnownFailure(msgspec.Struct, frozen=True):
    """Something remembered: its name in the index, and what is compared."""

    known_id: str
    traits: Traits


class FailureIndex(Protocol):
    """Where known failures are kept by their bands."""

    def find_candidates(self, bands: Sequence[int]) -> Iterable[KnownFailure]:
        """Those that share a band, the likeliest first; as many as are worth comparing."""


class RecallResult(msgspec.Struct, frozen=True):
    """The nearest known failure, if any came near at all, and what follows from how near."""

    verdict: str
    """match, new or unsure."""
    match_id: str | None
    score: float
    why: str


def recall_failure(asked: Traits, index: FailureIndex) -> RecallResult:
    """Return the nearest of what the index knows; ties go to the first that the index gives."""
    nearest, best = None, 0.0
    for known in index.find_candidates(compute_bands(asked)):
        found = score_similarity(asked, known.traits)
        if found > best:
            nearest, best = known, found
        if best >= CERTAIN_THRESHOLD:
            break
    if nearest is None:
        return RecallResult("new", None, 0.0, "nothing known is like it")
    why = compare_failures(asked, nearest.traits).why
    return RecallResult(judge_score(best), nearest.known_id, best, why)


def judge_score(score: float) -> str:
    """Return what follows from a likeness: match, unsure or new."""
    if score >= MATCH_THRESHOLD:
        return "match"
    return "unsure" if score >= UNSURE_THRESHOLD else "new"


MAX_CANDIDATES = 200
"""No more are compared: those that share most bands, then the newest."""
MAX_OTHERS = 50
LEAST_SCORE = 0.001
"""Two strangers have less in common."""
OTHERS_DOUBT = 2.0
"""By how much the odds of a failure fall that shares no band."""


class FailureMemory:
    """An index in memory, for a stream: what was added can be recalled."""

    def __init__(self) -> None:
        self._known: list[KnownFailure] = []
        self._by_band: dict[int, list[int]] = defaultdict(list)
        self._by_token: dict[str, list[int]] = defaultdict(list)

    def add(self, known_id: str, known: Traits) -> None:
        for band in compute_bands(known):
            self._by_band[band].append(len(self._known))
        for token in list_tokens(known):
            self._by_token[token].append(len(self._known))
        self._known.append(KnownFailure(known_id, known))

    def find_candidates(self, bands: Sequence[int]) -> Iterable[KnownFailure]:
        """Yield those that share most bands; of a band that many share, only the newest."""
        shared: dict[int, int] = defaultdict(int)
        for band in bands:
            for at in self._by_band.get(band, ())[-MAX_CANDIDATES:]:
                shared[at] += 1
        likely = sorted(shared, key=lambda at: (-shared[at], -at))[:MAX_CANDIDATES]
        return [self._known[at] for at in likely]

    def recall(self, asked: Traits) -> RecallResult:
        """Return the nearest of all; one that shares no band is doubted a little for it."""
        found = recall_failure(asked, self)
        best, nearest = found.score, None
        for known in self._find_others(asked) if best < MATCH_THRESHOLD else ():
            score = score_similarity(asked, known.traits)
            score = round(score / (score + (1 - score) * OTHERS_DOUBT), 6)
            if score > max(best, LEAST_SCORE):
                nearest, best = known, score
        if nearest is None:
            return found
        why = compare_failures(asked, nearest.traits).why
        return RecallResult(judge_score(best), nearest.known_id, best, why)

    def _find_others(self, asked: Traits) -> Iterable[KnownFailure]:
        """Return what shares no band: all of a few, of many what shares the rarest words."""
        if asked.is_empty:
            return []
        bands = compute_bands(asked)
        near = {at for band in bands for at in self._by_band.get(band, ())[-MAX_CANDIDATES:]}
        if len(self._known) <= MAX_CANDIDATES:
            return [self._known[at] for at in range(len(self._known)) if at not in near]
        shared: dict[int, float] = defaultdict(float)
        for token in list_tokens(asked):
            holders = self._by_token.get(token, ())
            for at in holders[-MAX_OTHERS:]:
                shared[at] += 1 / len(holders)
        likely = sorted(shared.keys() - near, key=lambda at: (-shared[at], -at))[:MAX_OTHERS]
        return [self._known[at] for at in likely]


def recall_stream(failures: Iterable[Failure]) -> Iterator[tuple[str, RecallResult]]:
    """Yield what each failure is like among those before it, in their order."""
    memory = FailureMemory()
    for failure in failures:
        asked = extract_traits(failure)
        yield failure.id, memory.recall(asked)
        memory.add(failure.id, asked)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.analyst", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("read").add_argument("file", type=Path)
    log = verbs.add_parser("evidence")
    log.add_argument("file")
    log.add_argument("--against", nargs="+", default=[], metavar="GOOD.log")
    for name in ("cluster", "recall", "triage", "suspect"):
        verb = verbs.add_parser(name)
        verb.add_argument("file", metavar="FAILURES.jsonl")
        if name == "triage":
            verb.add_argument("--learn", metavar="LABELLED.jsonl")
        if name == "suspect":
            verb.add_argument("--candidates", metavar="FILE.jsonl", required=True)
    return parser.parse_args()


def main() -> int:
    words = _parse()
    try:
        match words.verb:
            case "read":
                print_tests(words.file)
            case "evidence":
                print_evidence(words.file, words.against)
            case "cluster":
                print_families(words.file)
            case "recall":
                print_recalled(words.file)
            case "triage":
                print_kinds(words.file, words.learn)
            case "suspect":
                print_suspects(words.file, words.candidates)
    except InterlockError as error:
        echo_note(str(error))
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
