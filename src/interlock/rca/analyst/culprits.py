"""Culprits: which commits since the last green run may have brought a failure, and why.

The likeliest commits, by the files they touched, are looked into: each clue that ties one to the
failure, or speaks against it, has a value, and `WEIGHTS` says what it counts. A commit's score is
the chance that it is the culprit, beside all others and beside "none of these". The weights were
fitted on regressions of many projects, so that the chance is true: see docs/analyst.md.
"""

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from types import MappingProxyType

import msgspec

from interlock.rca.analyst.commit_profile import (
    CommitProfile,
    find_later_names,
    is_auxiliary,
    read_profiles,
    rename_files,
)
from interlock.rca.analyst.manifests import is_build_setting, is_manifest, match_dependency
from interlock.rca.analyst.mentions import collect_mentions
from interlock.rca.analyst.names import detect_language
from interlock.rca.analyst.reasons import (
    FILE_TRAITS,
    CommitClue,
    build_origin_clue,
    build_subject_clue,
    build_use_clue,
    tell_clues,
)
from interlock.rca.analyst.scene import FailureScene, count_spread
from interlock.rca.analyst.stack import is_test_name
from interlock.rca.analyst.suspects import RankedSuspect, rank_candidates
from interlock.rca.records import Failure
from interlock.rca.sources.git.history import Commit
from interlock.rca.sources.git.repository import Repository
from interlock.system.file_kinds import is_document

MAX_INSPECTED = 40
"""How many commits are looked into."""
_MOST_PATHS = 20_000
_MOST_SHARED = 4
"""So many shared words are named."""
_LONG_QUOTE = 12
"""A long text that a message quotes is hardly in a change by chance."""
_WORDY = 60
"""A change of so many words shares half as much by each: it would share with anything."""

WEIGHTS: Mapping[str, float] = MappingProxyType(
    {
        # The stack
        "wrote the break": 1.85,
        "wrote a line": 0.45,
        "beside the stack": 0.69,
        # The test, and the code it is about
        "named alike": 1.05,
        "subject": 1.0,
        "likeness": 2.18,
        "took back": 3.49,
        "changed what came with it": 1.46,
        "used by the test": 0.88,
        "used two steps away": 0.71,
        "not used": -0.72,
        "called at once": 1.34,
        "called by the test": 0.86,
        "called further away": 0.76,
        # Words
        "words of the message": 0.44,
        "words of the test": 0.86,
        "parts of the name": 1.28,
        "quoted": 0.82,
        # What the failure names
        "named by the failure": 2.0,
        "uses the missing name": 1.0,
        "took the name away": 1.9,
        "took the file away": 3.0,
        "dependency": 2.9,
        "submodule": 2.5,
        # Its own tests. Undone fixes change no test, so that the first is a guess.
        "changed the failing test": 0.8,
        "changed other tests": -2.11,
        "brought tests along": -1.5,
        # What speaks against it
        "alters no behaviour": -3.03,
        "changed no code": -2.69,
        "another language": -1.5,
        "breadth": -3.79,
    }
)
"""What a clue of value 1 counts, in the logarithm of the odds."""
NOBODY = 0.16
"""The same for "none of these commits"."""
_SLOPE, _SHIFT = 0.7, 0.8
"""From the first lead's share to its chance, in the logarithm of the odds: fitted on projects that
the weights were not fitted on, where the first of many weak leads was right more often than its
share."""
_MANY_FILES = 32
"""A commit of more files is near to anything, and each further one makes that say less."""
_OUT_OF_REACH = 99
_LEAST_TIE = 0.3
"""What the clues for a commit must count together to tie it to the failure."""
_SHARED_CAUSE = 0.5
"""The chance that two families of failures of one run have one cause, before anything is known."""
_MOST_SHARED_ODDS = 3.0
"""What all others say together counts so much at most: they are not independent of each other."""


class CulpritLead(msgspec.Struct, frozen=True):
    """A commit that may be the culprit; the score is the chance that it is."""

    repo: str
    commit: Commit
    score: float
    why: tuple[str, ...]
    path: str
    """The file that incriminates it most."""
    is_placed: bool = False
    """Whether something ties it to the failure beyond words: a place, a call, a dependency."""
    clues: Mapping[str, float] = {}
    """The values of its clues."""
    odds: float = 0.0
    """The logarithm of what its clues say together."""
    is_near: bool = False
    """Whether it touched something that the failure itself points at, by its stack, its names or
    what its test uses."""

    @property
    def is_tied(self) -> bool:
        """Whether anything speaks for it, beyond that it is in the range."""
        weighed = (WEIGHTS[kind] * value for kind, value in self.clues.items())
        return sum(each for each in weighed if each > 0) >= _LEAST_TIE

    @property
    def is_named(self) -> bool:
        """Whether the failure names something that it changed, code or not."""
        return any(kind in self.clues for kind in _BY_NAME)

    @property
    def is_inert(self) -> bool:
        """Whether it can alter nothing, as far as its diff tells, and nothing else ties it."""
        return "alters no behaviour" in self.clues and not self.is_placed


def rank_commits(
    failure: Failure, repository: Repository, commits: Sequence[Commit], rev: str = ""
) -> list[CulpritLead]:
    """The commits that may have brought it, likeliest first, by what this failure says alone."""
    if not commits or not repository.is_readable:
        return []
    mentions = collect_mentions(failure)
    renamed = find_later_names(commits)
    known = [rename_files(commit, renamed.get(commit.hash, {})) for commit in commits]
    paths = dict.fromkeys(
        path
        for commit in known
        for change in commit.files
        for path in (change.path, change.old)
        if path
    )
    ranked = {
        candidate.candidate: candidate
        for candidate in rank_candidates(mentions, list(paths)[:_MOST_PATHS])
    }
    scene = FailureScene(failure, mentions, repository, rev)
    near = _choose_commits(known, ranked, scene)
    profiles = read_profiles(repository, near, renamed)
    inspection = _Inspection(scene, profiles, ranked)
    found = [(commit, inspection.list_clues(commit)) for commit in near]
    return _weigh(repository.name, found, inspection)


def _choose_commits(
    commits: Sequence[Commit], ranked: Mapping[str, RankedSuspect], scene: FailureScene
) -> list[Commit]:
    """The commits that are worth a look: those that touch what the failure points at, then what
    its test uses, then other code and settings; of equals the newer."""
    reach = scene.reach if len(commits) > MAX_INSPECTED else {}
    scored: list[tuple[float, int, Commit]] = []
    for age, commit in enumerate(commits):
        score = 0.0
        for change in commit.files:
            path = change.path
            value = max(
                ranked[each].score if each in ranked else 0.0 for each in (path, change.old)
            )
            if path in scene.places or scene.names_file(path):
                value += 1.0
            if path in reach:
                value += 0.5 / max(1, reach[path])
            language = detect_language(path)
            if is_manifest(path) or is_build_setting(path):
                value = max(value, 0.15)
            elif language and not is_auxiliary(path):
                fits = not scene.languages or language in scene.languages
                value = max(value, 0.1 if fits and not is_test_name(path) else 0.02)
            elif not language and not is_document(path):
                value = max(value, 0.01)
            score = max(score, value)
        if not commit.files and commit.parents == 1:
            score = 0.001
        if score:
            broad = math.log10(1 + len(commit.files) + commit.more) / 10
            scored.append((broad - score, age, commit))
    return [commit for _, _, commit in sorted(scored)[:MAX_INSPECTED]]


def _weigh(
    repo: str,
    found: Sequence[tuple[Commit, list[CommitClue]]],
    inspection: "_Inspection",
) -> list[CulpritLead]:
    """Leads from clues."""
    leads = [
        CulpritLead(
            repo,
            commit,
            0.0,
            tuple(tell_clues(clues, WEIGHTS))
            or (f"it changed {path}" if path else "it is in the range",),
            path,
            any(clue.kind in _PLACED and clue.value for clue in clues),
            {clue.kind: round(clue.value, 4) for clue in clues if clue.value},
            sum(WEIGHTS[clue.kind] * clue.value for clue in clues),
            inspection.is_near(commit),
        )
        for commit, clues in found
        for path in [inspection.find_path(commit)]
    ]
    return _compute_chances(leads)


def _compute_chances(leads: Sequence[CulpritLead]) -> list[CulpritLead]:
    """Chances from odds: beside each other, and beside nobody."""
    most = max([NOBODY, *(lead.odds for lead in leads)])
    whole = math.exp(NOBODY - most) + sum(math.exp(lead.odds - most) for lead in leads)
    shares = [math.exp(lead.odds - most) / whole for lead in leads]
    first = max(range(len(leads)), key=shares.__getitem__, default=0)
    if leads and leads[first].is_tied and shares[first] < 1:
        odds = _SLOPE * math.log(shares[first] / (1 - shares[first])) + _SHIFT
        chance = 1 / (1 + math.exp(-odds))
        rest = (1 - chance) / (1 - shares[first])
        shares = [chance if at == first else share * rest for at, share in enumerate(shares)]
        # What only comes second must not be made to come first.
        shares = [min(share, chance) for share in shares]
    found = [
        msgspec.structs.replace(lead, score=round(share, 4))
        for lead, share in zip(leads, shares, strict=True)
    ]
    return sorted(found, key=lambda lead: (-lead.score, -lead.odds))


def weigh_with_others(
    leads: Sequence[CulpritLead], others: Sequence[Sequence[CulpritLead]]
) -> list[CulpritLead]:
    """The leads of one failure beside those of others of the same run, each found by itself: one
    commit often breaks many tests in many ways. Only what a failure itself points at, too, gains
    by that, or a commit that broke one thing would be blamed for everything."""
    opinions = [
        ({lead.commit.hash: lead.score for lead in other}, 1 + len(other))
        for other in others
        if other
    ]
    found: list[CulpritLead] = []
    for lead in leads:
        said = [(chances.get(lead.commit.hash, 0.0), many) for chances, many in opinions]
        # How much likelier the other's evidence is if this commit broke that one, too.
        odds = sum(
            math.log(1 - _SHARED_CAUSE + _SHARED_CAUSE * chance * many) for chance, many in said
        )
        count = sum(
            bool(other) and other[0].commit.hash == lead.commit.hash and other[0].score > 1 / many
            for other, (_, many) in zip(filter(None, others), said, strict=True)
        )
        if not lead.is_near or odds <= 0 or lead.is_inert:
            found.append(lead)
            continue
        told = "another failure points" if count == 1 else f"{count} other failures point"
        found.append(
            msgspec.structs.replace(
                lead,
                odds=lead.odds + min(odds, _MOST_SHARED_ODDS),
                why=(*lead.why, f"{told} at it too") if count else lead.why,
            )
        )
    return _compute_chances(found)


_PLACED = (
    "wrote the break",
    "wrote a line",
    "beside the stack",
    "called at once",
    "called by the test",
    "took the name away",
    "took the file away",
    "dependency",
    "changed the failing test",
)


_BY_NAME = (
    "dependency",
    "submodule",
    "named by the failure",
    "took the name away",
    "took the file away",
    "uses the missing name",
)
"""Clues that the failure names something that was changed."""


class _Inspection:
    """A close look at the few likeliest commits, side by side."""

    def __init__(
        self,
        scene: FailureScene,
        profiles: Mapping[str, CommitProfile],
        ranked: Mapping[str, RankedSuspect],
    ) -> None:
        self._scene = scene
        self._profiles = profiles
        self._ranked = ranked
        able = [each for each in profiles.values() if each.nature.is_behavioural]
        self._spread = count_spread(
            [(scene.words & each.words) | scene.find_common_words(each) for each in able]
        )
        self._spread_parts = count_spread([scene.test_name_parts & each.parts for each in able])
        self._spread_places = Counter(place for each in able for place in each.places)
        self._spread_functions = count_spread([each.functions for each in able])

    def find_path(self, commit: Commit) -> str:
        """The file that incriminates a commit most."""
        changed = self._profiles[commit.hash]
        paths = changed.paths or {change.path for change in commit.files}
        return min(paths, key=self._rank_path, default="")

    def is_near(self, commit: Commit) -> bool:
        """Whether it touched what the failure points at. A name is not enough where something broke
        by itself and its stack shows where."""
        scene, paths = self._scene, self._profiles[commit.hash].paths
        if not scene.is_check and scene.places:
            return bool(paths & scene.places)
        return bool(paths & {*scene.places, *self._ranked, *scene.reach})

    def _rank_path(self, path: str) -> tuple[bool, bool, float, int, str]:
        ranked = self._ranked.get(path)
        reached = self._scene.reach.get(path, 9)
        is_product = bool(detect_language(path)) and not is_test_name(path)
        score = ranked.score if ranked else 0.0
        return (path not in self._scene.places, not is_product, -score, reached, path)

    def list_clues(self, commit: Commit) -> list[CommitClue]:
        changed = self._profiles[commit.hash]
        clues = [*self._find_dependency(changed), *self._find_missing(changed)]
        clues += self._find_submodule(changed)
        if not changed.nature.is_behavioural:
            why = f"but it alters no behaviour: {changed.nature.why}"
            return [*clues, CommitClue("alters no behaviour", 1.0, why)]
        if changed.is_whole and not changed.paths:
            why = "but it alters no behaviour there"
            return [*clues, CommitClue("alters no behaviour", 1.0, why)]
        clues += self._find_places(commit.hash, changed)
        clues += self._find_uses(changed)
        clues += self._find_origin(changed)
        clues += self._find_calls(changed)
        clues += self._find_words(changed)
        clues += self._judge_tests(changed)
        clues += self._judge_kind(changed, is_told=any(clue.kind in _BY_NAME for clue in clues))
        return clues

    def _find_places(self, commit: str, changed: CommitProfile) -> Iterator[CommitClue]:
        scene = self._scene
        if spot := scene.find_written_location(commit, changed):
            last = scene.is_break(spot)
            which = "the line that failed" if last else "a line of the stack"
            kind = "wrote the break" if last else "wrote a line"
            yield CommitClue(kind, 1.0, f"it wrote {which}, {spot.path}:{spot.line}", spot.path)
        if near := scene.find_changed_location(changed):
            depth = scene.locations.index(near) + 1
            where = FILE_TRAITS["frame" if near.function else "mention"]
            why = f"it changed lines beside {near.path}:{near.line}, which {where}"
            # Who wrote a line there need not be told to have changed what is beside it.
            yield CommitClue("beside the stack", 1 / depth, "" if near is spot else why, near.path)

    def _find_uses(self, changed: CommitProfile) -> Iterator[CommitClue]:
        """By names, and by what the failing test imports."""
        scene = self._scene
        gone = {path for path in changed.gone_paths if detect_language(path)}
        own = {path for path in {*changed.product_paths, *gone} if not is_test_name(path)}
        best = max(
            (self._ranked[path] for path in own if path in self._ranked),
            key=lambda each: (each.score, each.candidate),
            default=None,
        )
        if best:
            named = tuple(FILE_TRAITS[clue] for clue in best.why.split(", ") if clue in FILE_TRAITS)
            what = _tell_change(best.candidate, changed)
            yield CommitClue("named alike", best.score, what, best.candidate, named)
        if named_file := next(filter(scene.names_file, sorted(own)), ""):
            why, named = _tell_change(named_file, changed), (FILE_TRAITS["mention"],)
            yield CommitClue("named by the failure", 1.0, why, named_file, named)
        if subjects := sorted(path for path in own if scene.is_subject(path)):
            why, value = _tell_change(subjects[0], changed), 1 / math.sqrt(len(scene.subjects) or 1)
            yield build_subject_clue(value, why, subjects[0])
        if not scene.test.path or not changed.code_paths or not scene.direct_uses:
            return
        told = {best.candidate if best else "", *subjects}
        nearest = min(
            changed.code_paths,
            key=lambda path: (scene.reach.get(path, _OUT_OF_REACH), path not in told, path),
        )
        what, steps = _tell_change(nearest, changed), scene.reach.get(nearest)
        if steps is not None and steps <= 1:
            what = what if scene.direct_uses < 6 else ""
            value = 1 / math.sqrt(scene.direct_uses)
            yield build_use_clue("used by the test", value, what, nearest)
        elif steps is not None:
            between = scene.find_use_between(nearest)
            what = what if between else ""
            value = 1 / (steps - 1)
            yield build_use_clue("used two steps away", value, what, nearest, between)
        else:
            yield CommitClue("not used", 1.0)

    def _find_origin(self, changed: CommitProfile) -> Iterator[CommitClue]:
        """By the code that the failing test was written for."""
        brought = self._scene.brought
        taken, total = changed.count_taken_back(brought)
        if taken:
            why = "it changed lines that came with the failing test"
            yield CommitClue("took back", taken / (total + 1) * brought.closeness, why)
        if common := sorted(changed.places & brought.places):
            spread = min(self._spread_places[place] for place in common)
            path, name = next(filter(changed.is_inside, common), (common[0][0], ""))
            yield build_origin_clue(brought.closeness / spread, path, name)

    def _find_calls(self, changed: CommitProfile) -> Iterator[CommitClue]:
        calls = self._scene.calls
        if not calls or not changed.functions:
            return
        by_step: dict[int, list[str]] = {}
        for name in changed.functions & calls.keys():
            by_step.setdefault(calls[name], []).append(name)
        kinds = (
            ("called at once", "the failure names what it changed:"),
            ("called by the test", "the test names what it changed:"),
            ("called further away", "the test reaches what it changed:"),
            *(("called further away", ""),) * 6,
        )
        for step, (kind, words) in enumerate(kinds):
            if names := by_step.get(step):
                names.sort(key=lambda name: (self._spread_functions[name], -len(name), name))
                value = 1 / self._spread_functions[names[0]] / max(1, step - 2)
                told = f"{words} {', '.join(names[:_MOST_SHARED])}" if words else ""
                yield CommitClue(kind, value, told)
                return

    def _find_words(self, changed: CommitProfile) -> Iterator[CommitClue]:
        scene = self._scene
        yield CommitClue("likeness", scene.measure_likeness(changed))
        # A word that every change uses means nothing; one that only this change uses means much.
        shared = scene.words & changed.words
        share = _WORDY / (_WORDY + len(changed.words))
        yield from _share("words of the message", shared, self._spread, share, "it speaks of")
        own = scene.find_common_words(changed) - shared
        share = _WORDY / (_WORDY + len(changed.product_words))
        yield from _share("words of the test", own, self._spread, share, "it changed code about")
        parts = scene.test_name_parts & changed.parts
        words = "it shares parts of names with the test:"
        yield from _share("parts of the name", parts, self._spread_parts, share, words)
        if text := next(filter(changed.contains_text, scene.quotes), ""):
            value = 1.0 if len(text) >= _LONG_QUOTE and " " in text else 0.5
            yield CommitClue("quoted", value, f"it changed the text {text!r}")

    def _find_missing(self, changed: CommitProfile) -> Iterator[CommitClue]:
        if name := next(filter(changed.removes_name, self._scene.missing_names), ""):
            yield CommitClue("took the name away", 1.0, f"it took away {name}, which is missed")
        elif name := next(filter(changed.adds_name, self._scene.missing_names), ""):
            yield CommitClue("uses the missing name", 1.0, f"it uses {name}, which is missed")
        for module in self._scene.dependencies.modules:
            name = module.replace(".", "/") if "/" not in module else module.lstrip("./")
            gone = [path for path in changed.gone_paths if _is_module(path, name)]
            if gone:
                why = f"it took away {min(gone)}, which is missed"
                yield CommitClue("took the file away", 1.0, why)
                return

    def _find_dependency(self, changed: CommitProfile) -> Iterator[CommitClue]:
        found = [
            match
            for change in changed.dependencies
            if (match := match_dependency(change, self._scene.dependencies))
        ]
        if found:
            value, why = max(found)
            yield CommitClue("dependency", value, why)

    def _find_submodule(self, changed: CommitProfile) -> Iterator[CommitClue]:
        found = [self._scene.judge_submodule(move) for move in changed.submodules]
        if found:
            value, why = max(found)
            yield CommitClue("submodule", value, why)

    def _judge_tests(self, changed: CommitProfile) -> Iterator[CommitClue]:
        scene = self._scene
        itself = scene.changes_test(changed)
        if changed.only_tests:
            if itself:
                yield CommitClue(
                    "changed the failing test",
                    1.0,
                    f"it changed the failing test, {scene.test.path}",
                )
            elif not scene.helpers & changed.paths and not any(
                scene.reach.get(path, 0) > 0 for path in changed.test_paths
            ):
                yield CommitClue("changed other tests", 1.0, "but it leaves the failing test alone")
        elif changed.test_paths:
            yield CommitClue("brought tests along", 1.0)

    def _judge_kind(self, changed: CommitProfile, *, is_told: bool) -> Iterator[CommitClue]:
        """By the kind of the change; where the failure tells of it, a change of settings is as good
        as one of code."""
        if not (changed.code_paths or changed.only_tests or is_told) and changed.is_whole:
            yield CommitClue("changed no code", 1.0)
        languages = {detect_language(path) for path in changed.code_paths}
        if languages and self._scene.languages and not languages & self._scene.languages:
            yield CommitClue("another language", 1.0)
        others = max(0, changed.breadth - 1)
        sweep = max(0.0, math.log2((1 + others) / _MANY_FILES))
        yield CommitClue("breadth", math.log2(1 + others) / 10 + sweep / 8)


def _tell_change(path: str, changed: CommitProfile) -> str:
    return f"it {'changed' if path in changed.paths else 'renamed or removed'} {path}"


def _share(
    kind: str, words: Collection[str], spread: Mapping[str, int], share: float, what: str
) -> Iterator[CommitClue]:
    weights = {word: share / spread[word] ** 2 for word in words if spread[word]}
    total = sum(weights.values())
    if total > 0:
        named = sorted(weights, key=lambda word: (-weights[word], word))[:_MOST_SHARED]
        told = f"{what} {', '.join(named)}" if what and total > _TOLD else ""
        yield CommitClue(kind, 1 - math.exp(-total), told)


_TOLD = 0.1
"""Words that mean less are not named."""


def _is_module(path: str, name: str) -> bool:
    stem = path.rpartition(".")[0] or path
    stem = stem.removesuffix("/__init__").removesuffix("/index").removesuffix("/mod")
    plain = name.rpartition(".")[0] if name.count(".") == 1 and "/" in name else name
    return stem in (plain, name) or stem.endswith((f"/{plain}", f"/{name}"))
