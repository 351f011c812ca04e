"""Culprits: which commits since the last green run may have brought a failure, and why.

The likeliest commits, by the files they touched, are looked into: each clue that ties one to the
failure, or speaks against it, has a value. What the clues make of it is weighed beside all other
commits, in `chances.py`.
"""

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from interlock.system.file_kinds import is_document
from interlock_rca.analyst.chances import (
    BY_NAME,
    PLACED,
    WEIGHTS,
    CulpritLead,
    compute_chances,
)
from interlock_rca.analyst.commit_profile import (
    CommitProfile,
    find_later_names,
    is_auxiliary,
    read_profiles,
    rename_files,
)
from interlock_rca.analyst.manifests import is_build_setting, is_manifest, match_dependency
from interlock_rca.analyst.mentions import Mentions, collect_mentions
from interlock_rca.analyst.names import detect_language
from interlock_rca.analyst.reasons import (
    FILE_TRAITS,
    NAMED,
    CommitClue,
    build_origin_clue,
    build_subject_clue,
    build_use_clue,
    tell_clues,
)
from interlock_rca.analyst.scene import FailureScene, count_spread
from interlock_rca.analyst.stack import is_test_name
from interlock_rca.analyst.suspects import RankedSuspect, rank_candidates
from interlock_rca.records import Failure
from interlock_rca.sources.git.history import Commit
from interlock_rca.sources.git.repository import Repository

MAX_INSPECTED = 40
"""How many commits are looked into."""
_MOST_PATHS = 20_000
_MOST_SHARED = 4
"""So many shared words are named."""
_LONG_QUOTE = 12
"""A long text that a message quotes is hardly in a change by chance."""
_WORDY = 60
"""A change of so many words shares half as much by each: it would share with anything."""

_NEARLY_NAMED = 0.3
"""A file is near to a failure from here on: common words alone come to less."""
_MANY_FILES = 32
"""A commit of more files is near to anything, and each further one makes that say less."""
_OUT_OF_REACH = 99
_OWN_LINES = 0.2
"""So much of what a commit changed must have come with the failing test to be called that."""


class CommitRange(NamedTuple):
    """The commits of a repository that may have brought a failure, newest first, and the revision
    that was tested."""

    repository: Repository
    commits: Sequence[Commit]
    rev: str = ""


def rank_commits(failure: Failure, ranges: Sequence[CommitRange]) -> list[CulpritLead]:
    """The commits that may have brought it, likeliest first, by what this failure says alone; those
    of all repositories beside each other."""
    ranges = [each for each in ranges if each.repository.is_readable]
    if not any(each.commits for each in ranges):
        return []
    mentions = collect_mentions(failure)
    scenes = [FailureScene(failure, mentions, each.repository, each.rev) for each in ranges]
    _share_test(scenes)
    renamed = [find_later_names(each.commits) for each in ranges]
    known = [
        [rename_files(commit, names.get(commit.hash, {})) for commit in each.commits]
        for each, names in zip(ranges, renamed, strict=True)
    ]
    ranked = _rank_paths(mentions, known)
    near = [
        _choose_commits(commits, ranked, scene)
        for commits, scene in zip(known, scenes, strict=True)
    ]
    profiles = [
        read_profiles(each.repository, chosen, names)
        for each, chosen, names in zip(ranges, near, renamed, strict=True)
    ]
    spread = _Spread(list(zip(scenes, profiles, strict=True)))
    leads = [
        lead
        for at, each in enumerate(ranges)
        for lead in _build_leads(
            each.repository.name,
            near[at],
            _Inspection(scenes[at], profiles[at], ranked, spread),
        )
    ]
    return compute_chances(leads)


def _share_test(scenes: Sequence[FailureScene]) -> None:
    """The failing test is in one of the repositories: what it is about holds for all of them."""
    for scene in scenes:
        if scene.test.path:
            for other in scenes:
                if not other.test.path:
                    other.read_foreign_test(scene.test)
            return


def _rank_paths(
    mentions: Mentions, commits: Sequence[Sequence[Commit]]
) -> Mapping[str, RankedSuspect]:
    """The files that were changed, those of all repositories side by side: which words are rare
    among them shows only so."""
    most = _MOST_PATHS // len(commits)
    paths: dict[str, None] = {}
    for own in commits:
        changed = dict.fromkeys(
            path
            for commit in own
            for change in commit.files
            for path in (change.path, change.old)
            if path
        )
        paths |= dict.fromkeys(list(changed)[:most])
    return {each.candidate: each for each in rank_candidates(mentions, paths)}


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


def _build_leads(
    repo: str, commits: Sequence[Commit], inspection: "_Inspection"
) -> Iterator[CulpritLead]:
    """Leads from clues, as yet without chances."""
    for commit in commits:
        clues = inspection.list_clues(commit)
        path = inspection.find_path(commit)
        bare = f"it changed {path}" if path else "it is in the range"
        yield CulpritLead(
            repo,
            commit,
            0.0,
            tuple(tell_clues(clues, WEIGHTS)) or (bare,),
            path,
            any(clue.kind in PLACED and clue.value for clue in clues),
            {clue.kind: round(clue.value, 4) for clue in clues if clue.value},
            sum(WEIGHTS[clue.kind] * clue.value for clue in clues),
            inspection.is_near(commit),
        )


class _Spread:
    """In how many of the changes each word, part of a name, place and function is, whatever
    repository they are in."""

    def __init__(self, seen: Sequence[tuple[FailureScene, Mapping[str, CommitProfile]]]) -> None:
        able = [
            (scene, each)
            for scene, profiles in seen
            for each in profiles.values()
            if each.nature.is_behavioural
        ]
        self.words = count_spread(
            [
                ((scene.words | scene.log_words) & each.words) | scene.find_common_words(each)
                for scene, each in able
            ]
        )
        self.parts = count_spread([scene.test_name_parts & each.parts for scene, each in able])
        self.places = Counter(place for _, each in able for place in each.places)
        self.functions = count_spread([each.functions for _, each in able])


class _Inspection:
    """A close look at the few likeliest commits of one repository."""

    def __init__(
        self,
        scene: FailureScene,
        profiles: Mapping[str, CommitProfile],
        ranked: Mapping[str, RankedSuspect],
        spread: _Spread,
    ) -> None:
        self._scene = scene
        self._profiles = profiles
        self._ranked = ranked
        self._spread = spread

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
        named = {path for path, each in self._ranked.items() if each.score >= _NEARLY_NAMED}
        return bool(paths & {*scene.places, *named, *scene.reach})

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
        clues += self._judge_kind(changed, is_told=any(clue.kind in BY_NAME for clue in clues))
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
            where = FILE_TRAITS["frame"] if near.function else NAMED
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
            why, named = _tell_change(named_file, changed), (NAMED,)
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
            # A line among many may stand in other places, too: only that it is alike is sure.
            why = "it changed lines that came with the failing test"
            told = why if taken >= _OWN_LINES * total else ""
            yield CommitClue("took back", taken / (total + 1) * brought.closeness, told)
        if common := sorted(changed.places & brought.places):
            spread = min(self._spread.places[place] for place in common)
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
                names.sort(key=lambda name: (self._spread.functions[name], -len(name), name))
                value = 1 / self._spread.functions[names[0]] / max(1, step - 2)
                sure = [name for name in names if self._is_sure(name, step, changed)]
                told = f"{words} {', '.join(sure[:_MOST_SHARED])}" if words and sure else ""
                yield CommitClue(kind, value, told)
                return

    def _is_sure(self, name: str, step: int, changed: CommitProfile) -> bool:
        """Whether a function that is named or called is the one that was changed, and no other of
        that name: it is the only one, or the file it is in is in the stack, or the test's own."""
        scene = self._scene
        if not scene.is_ambiguous(name):
            return True
        paths = {path for path, function in changed.places if function == name}
        if step == 0:
            return bool(paths & scene.places)
        return step == 1 and any(
            path in scene.subjects or scene.reach.get(path) == 1 for path in paths
        )

    def _find_words(self, changed: CommitProfile) -> Iterator[CommitClue]:
        scene = self._scene
        yield CommitClue("likeness", scene.measure_likeness(changed))
        # A word that every change uses means nothing; one that only this change uses means much.
        kinds = (
            ("words of the message", scene.words & changed.words, "it speaks of"),
            ("words of the log", scene.log_words & changed.words, "its log speaks of"),
            (
                "words of the test",
                scene.find_common_words(changed) - (scene.words & changed.words),
                "it changed code about",
            ),
        )
        for kind, words, what in kinds:
            count = len(changed.product_words if kind == "words of the test" else changed.words)
            weights = _weigh(words, self._spread.words, _WORDY / (_WORDY + count))
            meant = changed.code_words if kind == "words of the test" else weights.keys()
            yield from _share(kind, weights, what, scene.spellings, meant)
        share = _WORDY / (_WORDY + len(changed.product_words))
        parts = _weigh(scene.test_name_parts & changed.parts, self._spread.parts, share)
        told = "it shares parts of names with the test:"
        yield from _share("parts of the name", parts, told, scene.part_spellings, parts.keys())
        if text := next(filter(changed.contains_text, scene.quotes), ""):
            value = 1.0 if len(text) >= _LONG_QUOTE and " " in text else 0.5
            yield CommitClue("quoted", value, f"it changed lines with {text!r}")

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
            if (
                match := match_dependency(change, self._scene.dependencies, self._scene.is_own_name)
            )
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


def _weigh(words: Collection[str], spread: Mapping[str, int], share: float) -> Mapping[str, float]:
    return {word: share / spread[word] ** 2 for word in words if spread[word]}


def _share(
    kind: str,
    weights: Mapping[str, float],
    what: str,
    spellings: Mapping[str, str],
    meant: Collection[str],
) -> Iterator[CommitClue]:
    """All the words count, and those that are `meant` are told."""
    total = sum(weights.values())
    if total > 0:
        named = sorted(weights.keys() & meant, key=lambda word: (-weights[word], word))
        said = dict.fromkeys(spellings.get(word, word) for word in named[:_MOST_SHARED])
        told = f"{what} {', '.join(said)}" if said and total > _TOLD else ""
        yield CommitClue(kind, 1 - math.exp(-total), told)


_TOLD = 0.1
"""Words that mean less are not named."""


def _is_module(path: str, name: str) -> bool:
    stem = path.rpartition(".")[0] or path
    stem = stem.removesuffix("/__init__").removesuffix("/index").removesuffix("/mod")
    plain = name.rpartition(".")[0] if name.count(".") == 1 and "/" in name else name
    return stem in (plain, name) or stem.endswith((f"/{plain}", f"/{name}"))
