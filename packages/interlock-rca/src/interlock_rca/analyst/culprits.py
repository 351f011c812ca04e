"""Culprits: which commits since the last green run may have brought a failure, and why.

The likeliest commits, by the files they touched, are looked into. `CLUES` says what ties one to the
failure, or speaks against it; the scorer weighs all commits beside each other.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from interlock.system.file_kinds import is_document
from interlock_rca.analyst.chances import BY_NAME, CulpritLead, rank_leads
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
from interlock_rca.analyst.scene import FailureScene, count_spread
from interlock_rca.analyst.scoring import (
    Clue,
    Finding,
    find_clues,
    load_model,
    sum_odds,
    tell_reasons,
)
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
_WORDY = 60
"""A change of so many words shares half as much by each: it would share with anything."""
_TOLD = 0.1
"""Words that mean less are not named."""
_NEARLY_NAMED = 0.3
"""A file is near to a failure from here on: common words alone come to less."""
_OWN_LINES = 0.2
"""So much of what a commit changed must have come with the failing test to be called that."""
_FILE_TRAITS: Mapping[str, str] = {
    "frame": "is in the stack",
    "log frame": "is in a stack of the log",
    "subject": "is what the test is named after",
    "alike": "is named like the test",
    "words": "shares words with the test or the message",
    "mention": "has the name of something in the failure",
    "package": "lies beside the test",
}
"""What the strongest sign for a file says of it, as it follows "which"."""


class CommitRange(NamedTuple):
    """The commits of a repository that may have brought a failure, newest first, and the revision
    that was tested."""

    repository: Repository
    commits: Sequence[Commit]
    rev: str = ""


def rank_commits(failure: Failure, ranges: Sequence[CommitRange]) -> list[CulpritLead]:
    """Return the commits that may have brought a failure, likeliest first, by what this failure
    says alone; those of all repositories beside each other."""
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
    return rank_leads(
        [
            _build_lead(
                each.repository.name,
                CommitView(scenes[at], commit, profiles[at][commit.hash], ranked, spread),
            )
            for at, each in enumerate(ranges)
            for commit in near[at]
        ]
    )


def _share_test(scenes: Sequence[FailureScene]) -> None:
    """Let what the failing test is about, in one of the repositories, hold for all of them."""
    for scene in scenes:
        if scene.test.path:
            for other in scenes:
                if not other.test.path:
                    other.read_foreign_test(scene.test)
            return


def _rank_paths(
    mentions: Mentions, commits: Sequence[Sequence[Commit]]
) -> Mapping[str, RankedSuspect]:
    """Rank the files that were changed, those of all repositories side by side: which words are
    rare among them shows only so."""
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
    """Choose the commits that are worth a look: those that touch what the failure points at, then
    other code and settings; of equals the newer."""
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


def _build_lead(repo: str, view: "CommitView") -> CulpritLead:
    """Return the lead of one commit, as yet without its chance."""
    found = find_clues(CLUES, view)
    values = {name: round(finding.value, 4) for name, finding in found.items()}
    path, model = view.path, load_model("culprit")
    bare = f"it changed {path}" if path else "it is in the range"
    return CulpritLead(
        repo,
        view.commit,
        0.0,
        tell_reasons(CLUES, model, found) or (bare,),
        path,
        not (view.is_able or found),
        values,
        sum_odds(model, values),
        view.is_near,
    )


class _Spread:
    """In how many of the changes each word and part of a name is, whatever repository they are
    in."""

    def __init__(self, seen: Sequence[tuple[FailureScene, Mapping[str, CommitProfile]]]) -> None:
        able = [
            (scene, each)
            for scene, profiles in seen
            for each in profiles.values()
            if each.nature.is_behavioural
        ]
        self.parts = count_spread([scene.test_name_parts & each.parts for scene, each in able])
        self._traits = count_spread([frozenset(each.traits) for _, each in able])
        self._count = len(able)

    def measure_rarity(self, trait: str) -> float:
        """Return how rare a part of names is among the changes."""
        return math.log((2 + self._count) / (1 + self._traits[trait]))


class CommitView:
    """One commit, held against one failure."""

    def __init__(
        self,
        scene: FailureScene,
        commit: Commit,
        changed: CommitProfile,
        ranked: Mapping[str, RankedSuspect],
        spread: _Spread,
    ) -> None:
        self.scene = scene
        self.commit = commit
        self.changed = changed
        self.ranked = ranked
        self.spread = spread

    @property
    def path(self) -> str:
        """The file that incriminates the commit most."""
        paths = self.changed.paths or {change.path for change in self.commit.files}
        return min(paths, key=self._rank_path, default="")

    def _rank_path(self, path: str) -> tuple[bool, bool, float, str]:
        ranked = self.ranked.get(path)
        is_product = bool(detect_language(path)) and not is_test_name(path)
        score = ranked.score if ranked else 0.0
        return (path not in self.scene.places, not is_product, -score, path)

    @property
    def is_near(self) -> bool:
        """Whether the commit touched what the failure points at. A name is not enough where
        something broke by itself and its stack shows where."""
        scene, paths = self.scene, self.changed.paths
        if not scene.is_check and scene.places:
            return bool(paths & scene.places)
        named = {path for path, each in self.ranked.items() if each.score >= _NEARLY_NAMED}
        return bool(paths & {*scene.places, *named, *scene.subjects})

    @cached_property
    def own_paths(self) -> list[str]:
        """Files of the product that the commit changed, renamed or removed."""
        gone = {path for path in self.changed.gone_paths if detect_language(path)}
        paths = {*self.changed.product_paths, *gone}
        return sorted(path for path in paths if not is_test_name(path))

    @cached_property
    def is_able(self) -> bool:
        """Whether the commit can have altered behaviour."""
        changed = self.changed
        return changed.nature.is_behavioural and not (changed.is_whole and not changed.paths)

    @cached_property
    def is_named(self) -> bool:
        """Whether the failure names something that the commit changed."""
        return any(clue.compute(self) for clue in CLUES if clue.name in BY_NAME)

    def tell_change(self, path: str) -> str:
        return f"it {'changed' if path in self.changed.paths else 'renamed or removed'} {path}"


Compute = Callable[[CommitView], Finding | None]


def _if_able(compute: Compute) -> Compute:
    """Let a clue speak only of commits that can have altered behaviour."""
    return lambda view: compute(view) if view.is_able else None


# Names


@_if_able
def _find_name_alike(view: CommitView) -> Finding | None:
    ranked = [view.ranked[path] for path in view.own_paths if path in view.ranked]
    best = max(ranked, key=lambda each: (each.score, each.candidate), default=None)
    if best is None:
        return None
    traits = [_FILE_TRAITS[sign] for sign in best.why.split(", ") if sign in _FILE_TRAITS]
    return Finding(best.score, (view.tell_change(best.candidate), traits[0]) if traits else ())


@_if_able
def _find_named_file(view: CommitView) -> Finding | None:
    named = next(filter(view.scene.names_file, view.own_paths), "")
    return Finding(1.0, (view.tell_change(named),)) if named else None


@_if_able
def _find_subject(view: CommitView) -> Finding | None:
    subject = next(filter(view.scene.is_subject, view.own_paths), "")
    if not subject:
        return None
    value = 1 / math.sqrt(len(view.scene.subjects) or 1)
    return Finding(value, (view.tell_change(subject),))


# The code that the failing test was written for


@_if_able
def _find_lines_taken_back(view: CommitView) -> Finding | None:
    brought = view.scene.brought
    taken, total = view.changed.count_taken_back(brought)
    if not taken:
        return None
    # A line among many may stand in other places, too: only that it is alike is sure.
    told = ("",) if taken >= _OWN_LINES * total else ()
    whole = len(brought.added) + len(brought.removed)
    return Finding(min(1.0, taken / whole) * brought.closeness, told)


# Words


@_if_able
def _find_likeness(view: CommitView) -> Finding | None:
    return Finding(view.scene.measure_likeness(view.changed, view.spread.measure_rarity))


@_if_able
def _find_name_parts(view: CommitView) -> Finding | None:
    """A part that every change uses means nothing; one that only this change uses means much."""
    scene, changed, spread = view.scene, view.changed, view.spread.parts
    share = _WORDY / (_WORDY + len(changed.product_words))
    weights = {part: share / spread[part] ** 2 for part in scene.test_name_parts & changed.parts}
    total = sum(weights.values())
    if not total:
        return None
    named = sorted(weights, key=lambda part: (-weights[part], part))[:_MOST_SHARED]
    said = ", ".join(dict.fromkeys(scene.part_spellings.get(part, part) for part in named))
    return Finding(1 - math.exp(-total), (said,) if total > _TOLD else ())


# What the failure names


def _find_dependency(view: CommitView) -> Finding | None:
    found = [
        match
        for change in view.changed.dependencies
        if (match := match_dependency(change, view.scene.dependencies, view.scene.is_own_name))
    ]
    return Finding(max(found)[0], (max(found)[1],)) if found else None


def _find_submodule(view: CommitView) -> Finding | None:
    found = [view.scene.judge_submodule(move) for move in view.changed.submodules]
    return Finding(max(found)[0], (max(found)[1],)) if found else None


# Tests


@_if_able
def _find_changed_test(view: CommitView) -> Finding | None:
    if not view.changed.only_tests or not view.scene.changes_test(view.changed):
        return None
    return Finding(1.0, (view.scene.test.path,))


# The kind of the change


@_if_able
def _find_no_code(view: CommitView) -> Finding | None:
    """A change of something else is as good as one of code where the failure names it."""
    changed = view.changed
    is_meant = changed.code_paths or not changed.is_whole or view.is_named
    return None if is_meant or view.scene.changes_test(changed) else Finding(1.0)


CLUES: tuple[Clue[CommitView], ...] = (
    Clue("named alike", _find_name_alike, "{}, which {}"),
    Clue("named by the failure", _find_named_file, "{}, which is named by the failure"),
    Clue("subject", _find_subject, "{}, which the test's file is named after"),
    Clue("took back", _find_lines_taken_back, "it changed lines that came with the failing test{}"),
    Clue("likeness", _find_likeness),
    Clue("parts of the name", _find_name_parts, "it shares parts of names with the test: {}"),
    Clue("dependency", _find_dependency, "{}"),
    Clue("submodule", _find_submodule, "{}"),
    Clue("changed the failing test", _find_changed_test, "it changed the failing test, {}"),
    Clue("changed no code", _find_no_code),
)
"""What is known of a commit and a failure. What each clue counts stands in culprit_model.toml."""
