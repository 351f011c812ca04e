"""Is a scenario sound? Labels that are missing, unknown or contradict each other are reported.

Labels are held against each other and against the ways that lead through F0 to F6. An error makes
scores wrong; a warning makes them doubtful; a note is worth knowing.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

from interlock.engine.verify.finding import Finding, Level
from interlock_rca.calibration.marks import read_metrics
from interlock_rca.calibration.scenario import LabelledCase, PlantedCommit, Scenario
from interlock_rca.calibration.world import find_world_faults
from interlock_rca.taxonomy import TAXONOMY

_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/#-]{0,127}")
_NEXT_STEPS: Final = {  # F2 to F5: linked to a family's first; F3 to F3: another repository
    "": ("F0",),
    "F0": ("F1", "F5"),
    "F1": ("F2", "F3", "F5"),
    "F2": ("F3", "F5"),
    "F3": ("F2", "F3", "F4", "F5"),
    "F4": ("F5",),
    "F5": ("F1", "F2", "F3", "F6"),
    "F6": (),
}
_LAST_STEPS: Final = ("F4", "F6")
"""F4 is where a duplicate ends that nobody reviews."""


def check_scenario(scenario: Scenario, unread: Sequence[str] = ()) -> tuple[Finding, ...]:
    """All that is wrong, worst first."""
    found = [finding for look in _CHECKS for finding in look(scenario)]
    found += [
        _make_finding(
            "unread-field", "note", place, "nothing reads this field", "remove or rename it"
        )
        for place in unread
    ]
    levels: dict[str, int] = {"error": 0, "warning": 1, "note": 2}
    return tuple(sorted(found, key=lambda each: levels[each.level]))


def _make_finding(id_: str, level: Level, subject: str, message: str, fix: str) -> Finding:
    return Finding(id=id_, level=level, message=message, fix=fix, subject=subject)


def _check_ids(scenario: Scenario) -> Iterator[Finding]:
    groups = {
        "root cause": [each.id for each in scenario.rcas],
        "symptom": [each.id for each in scenario.symptoms],
        "case": [each.id for each in (*scenario.cases, *scenario.candidates)],
        "repository": [each.name for each in scenario.workspace.repos],
    }
    for kind, ids in groups.items():
        for id_, number in sorted(Counter(ids).items()):
            if number > 1:
                text = f"the {kind} {id_!r} is there {number} times"
                yield _make_finding("duplicate-id", "error", id_, text, "give each its own id")
            if not _ID.fullmatch(id_):
                text = f"{id_[:80]!r} is not a valid id of a {kind}"
                yield _make_finding(
                    "bad-id", "error", id_[:80], text, "use letters, digits and ._/#-"
                )
    if not scenario.cases:
        yield _make_finding("no-cases", "error", "", "the scenario has no cases", "add cases")


def _check_references(scenario: Scenario) -> Iterator[Finding]:
    causes, repos = set(scenario.causes), {repo.name for repo in scenario.workspace.repos}
    symptoms = {symptom.id for symptom in scenario.symptoms}
    cases = {case.id for case in scenario.cases}
    named = [(each.id, "maps_to_rca", each.maps_to_rca, causes) for each in scenario.symptoms]
    for repo in scenario.workspace.repos:
        named += [(repo.name, "relevant_to_rcas", each, causes) for each in repo.relevant_to_rcas]
    for cause in scenario.rcas:
        named += [(cause.id, "relevant_repos", each, repos) for each in cause.relevant_repos]
    for case in (*scenario.cases, *scenario.candidates):
        named.append((case.id, "rca_id", case.rca_id, causes))
        named.append((case.id, "symptom_id", case.symptom_id, symptoms))
        named.append((case.id, "follows", case.follows, cases))
        named += [(case.id, "expected repositories", each, repos) for each in _list_repos(case)]
    for subject, field, word, known in named:
        if word and word not in known:
            text = f"{field} names {word[:80]!r}, which does not exist"
            yield _make_finding(
                "unknown-id", "error", subject, text, "name one that exists, or add it"
            )
    metrics = {metric.id for metric in read_metrics().metrics}
    for word in scenario.dry_capped_metrics:
        if word not in metrics:
            text = f"dry_capped_metrics names {word[:80]!r}"
            yield _make_finding("unknown-id", "error", "", text, "use M1 to M20")


def _list_repos(case: LabelledCase) -> Iterator[str]:
    if case.expected_triage:
        yield from case.expected_triage.candidate_repos
    if case.expected_resolve:
        yield from (repo.name for repo in case.expected_resolve.selected_repos)


def _check_labels(scenario: Scenario) -> Iterator[Finding]:
    for cause in scenario.rcas:
        for field in ("defect_type", "component", "category"):
            if not getattr(cause, field):
                text = f"the root cause has no {field}"
                yield _make_finding("missing-label", "error", cause.id, text, f"write its {field}")
        if cause.required_keywords and cause.keyword_threshold < 1:
            text = "keyword_threshold is below 1, so any message is relevant"
            yield _make_finding("free-keywords", "error", cause.id, text, "say how many are needed")
        if cause.keyword_threshold > len(cause.required_keywords) > 0:
            text = "keyword_threshold is above the number of keywords, so no message is relevant"
            yield _make_finding("too-many-keywords", "error", cause.id, text, "lower it")
    for case in scenario.cases:
        yield from _check_case_labels(case)


def _check_case_labels(case: LabelledCase) -> Iterator[Finding]:
    if not case.test_name or not (case.error_message or case.log_snippet):
        text = "test_name is missing, or both error_message and log_snippet are"
        yield _make_finding(
            "nothing-to-read", "error", case.id, text, "write what an agent may read"
        )
    if not case.expected_path:
        fix = "write the steps, F0 first"
        yield _make_finding("missing-label", "error", case.id, "expected_path is missing", fix)
    if not case.rca_id and not case.expect_skip:
        text = "rca_id is missing, and the case is not to be skipped"
        yield _make_finding("missing-label", "error", case.id, text, "name its root cause")
    needed = {"F1": "expected_triage", "F3": "expected_invest"}
    for step, field in needed.items():
        if step in case.expected_path and getattr(case, field) is None:
            text = f"the expected path visits {step}, but {field} is missing"
            yield _make_finding("missing-label", "error", case.id, text, f"write {field}")
    triage = case.expected_triage
    if triage and not triage.symptom_category:
        text = "expected_triage has no symptom_category"
        yield _make_finding("missing-label", "error", case.id, text, "write the category")
    elif triage and TAXONOMY.find_category(triage.symptom_category) is None:
        text = f"{triage.symptom_category[:80]!r} is not a category"
        yield _make_finding(
            "unknown-word", "warning", case.id, text, ", ".join(TAXONOMY.categories)
        )


def _check_duplicates(scenario: Scenario) -> Iterator[Finding]:
    """The same failure twice counts twice and tells nothing new."""
    seen: dict[tuple[str, ...], str] = {}
    for case in scenario.cases:
        key = (case.version, case.job, case.test_name, case.error_message, case.log_snippet)
        if key in seen:
            text = f"the same failure as {seen[key]}: version, job, test, message and log"
            yield _make_finding("duplicate-case", "error", case.id, text, "remove one of them")
        seen.setdefault(key, case.id)


def _check_families(scenario: Scenario) -> Iterator[Finding]:
    causes: dict[str, set[str]] = defaultdict(set)
    families: dict[str, set[str]] = defaultdict(set)
    splits: dict[str, set[str]] = defaultdict(set)
    for case in scenario.cases:
        family = scenario.family_of(case)
        splits[family].add(case.split)
        if case.rca_id:
            causes[family].add(case.rca_id)
            families[case.rca_id].add(family)
    for family, own_causes in sorted(causes.items()):
        if len(own_causes) > 1:
            text = f"the family has several causes: {', '.join(sorted(own_causes))}"
            yield _make_finding("contradictory-family", "error", family, text, "split the family")
    for cause, own_families in sorted(families.items()):
        if len(own_families) > 1:
            text = f"the cause has several families: {', '.join(sorted(own_families))}"
            yield _make_finding(
                "contradictory-family", "error", cause, text, "make them one family"
            )
    for family, found in sorted(splits.items()):
        if {"train", "test"} <= found:
            text = "the family is in both train and test, so the test is not independent"
            yield _make_finding(
                "leaking-split", "warning", family, text, "keep a family in one split"
            )
    yield from _check_symptoms(scenario)


def _check_symptoms(scenario: Scenario) -> Iterator[Finding]:
    causes = {symptom.id: symptom.maps_to_rca for symptom in scenario.symptoms}
    for case in scenario.cases:
        cause = causes.get(case.symptom_id, "")
        if cause and cause != case.rca_id:
            text = f"symptom {case.symptom_id} belongs to {cause}, the case to {case.rca_id!r}"
            yield _make_finding(
                "contradictory-symptom", "error", case.id, text, "correct one of them"
            )


def _check_paths(scenario: Scenario) -> Iterator[Finding]:
    for case in scenario.cases:
        path = case.expected_path
        wrong = next(
            (
                f"{one or 'the start'} to {to}"
                for one, to in zip(("", *path), path, strict=False)
                if to not in _NEXT_STEPS.get(one, ())
            ),
            "",
        )
        if wrong:
            fix = "write a path that the circuit allows"
            text = f"no case goes from {wrong[:80]}"
            yield _make_finding("impossible-path", "error", case.id, text, fix)
        elif path and path[-1] not in _LAST_STEPS:
            text = f"no case ends at {path[-1]}"
            yield _make_finding("impossible-path", "error", case.id, text, "end it at F6")
        else:
            yield from _check_flags(case)


def _check_flags(case: LabelledCase) -> Iterator[Finding]:
    """What the flags of a case say must be what its path does."""
    hops = list(zip(case.expected_path, case.expected_path[1:], strict=False))
    flags = {
        "expect_recall_hit": (case.expect_recall_hit, ("F0", "F5") in hops),
        "expect_skip": (case.expect_skip, ("F1", "F5") in hops),
    }
    for name, (flag, done) in flags.items():
        if hops and flag != done:
            text = f"{name} is {str(flag).lower()}, the expected path says otherwise"
            yield _make_finding("contradictory-path", "error", case.id, text, "correct one of them")
    loops = hops.count(("F3", "F2"))
    if hops and loops != case.expected_loops:
        text = f"expected_loops is {case.expected_loops}, the path goes from F3 to F2 {loops} times"
        yield _make_finding(
            "contradictory-path", "error", case.id, text, "count F3 to F2 in the path"
        )
    recall, match = case.expected_recall, case.expect_recall_hit
    if recall and recall.match != match and not (recall.match and recall.confidence < 0.8):
        text = "expected_recall and expect_recall_hit disagree"
        yield _make_finding("contradictory-path", "error", case.id, text, "correct one of them")


def _check_order(scenario: Scenario) -> Iterator[Finding]:
    """Nothing is recalled before it was found, and nothing follows what comes later."""
    places = {case.id: number for number, case in enumerate(scenario.cases)}
    follows = {case.id: case.follows for case in scenario.cases if case.follows in places}
    rings = {min(ring): ring for case in follows if (ring := _find_cycle(case, follows))}
    for ring in rings.values():
        text = f"{' follows '.join((*ring, ring[0]))}: a cycle"
        yield _make_finding("cycle", "error", ring[0], text, "one of them must be the first")
    in_rings = {case for ring in rings.values() for case in ring}
    known: set[str] = set()
    for case in scenario.cases:
        late = case.follows in places and places[case.follows] >= places[case.id]
        if late and case.id not in in_rings:
            text = f"it follows {case.follows}, which comes later"
            yield _make_finding("wrong-order", "error", case.id, text, "move it behind that")
        if case.expect_recall_hit and case.rca_id not in known:
            text = f"it expects to recall {case.rca_id!r}, which no earlier case found"
            yield _make_finding("recall-before-found", "error", case.id, text, "move or relabel it")
        if "F3" in case.expected_path and case.rca_id:
            known.add(case.rca_id)


def _find_cycle(case: str, follows: dict[str, str]) -> tuple[str, ...]:
    """The circle that this case is in, from its smallest id on; empty if it is in none."""
    seen = [case]
    while (after := follows.get(seen[-1])) is not None and after not in seen:
        seen.append(after)
    if after != case:
        return ()
    at = seen.index(min(seen))
    return tuple(seen[at:] + seen[:at])


def _check_worlds(scenario: Scenario) -> Iterator[Finding]:
    repos = {repo.name for repo in scenario.workspace.repos}
    for repo in sorted(scenario.worlds.keys() - repos):
        text = f"a world is planted for {repo[:80]!r}, which is not a repository of the scenario"
        yield _make_finding("unknown-id", "error", repo[:80], text, "add it to workspace.repos")
    for repo, fault in find_world_faults(scenario.worlds):
        yield _make_finding("bad-world", "error", repo[:80], fault, "correct the planted commit")
    commits = {f"{repo}@{each.id}" for repo, world in scenario.worlds.items() for each in world}
    for cause in scenario.rcas:
        if cause.culprit and cause.culprit not in commits:
            text = f"culprit {cause.culprit[:80]!r} is not a planted commit"
            yield _make_finding(
                "unknown-id", "error", cause.id, text, "write repo@id of a planted one"
            )


def _check_evidence(scenario: Scenario) -> Iterator[Finding]:
    """What is expected must be possible: evidence that is planted, keywords that the truth has."""
    texts = {repo: _collect_texts(world) for repo, world in scenario.worlds.items()}
    for case in scenario.cases:
        expected, cause = case.expected_invest, scenario.cause_of(case)
        if expected is None:
            continue
        for ref in expected.evidence_refs:
            repo, path, name = [*ref.split(":", 2), "", ""][:3]
            known = texts.get(repo)
            if known is not None and not any(name in text for text in known.get(path, ())):
                text = f"{ref[:120]!r} is not in the planted world"
                yield _make_finding(
                    "missing-evidence", "error", case.id, text, "plant or correct it"
                )
        if cause and cause.required_keywords:
            expected_text = expected.rca_message.lower()
            met = sum(word.lower() in expected_text for word in cause.required_keywords)
            if met < cause.keyword_threshold:
                text = f"the expected message has {met} of {cause.keyword_threshold} keywords"
                yield _make_finding(
                    "unlike-keywords", "warning", case.id, text, "change one of them"
                )


def list_hidden_evidence(scenario: Scenario) -> list[tuple[str, str]]:
    """Cases that expect evidence of a repository that nobody can look into, and that repository."""
    repos = scenario.workspace.repos
    here = {repo.name for repo in repos if repo.path and Path(repo.path).is_dir()}
    return [
        (case.id, repo)
        for case in scenario.cases
        for ref in (case.expected_invest.evidence_refs if case.expected_invest else ())
        if (repo := ref.partition(":")[0]) not in here and repo not in scenario.worlds
    ]


def _note_hidden_evidence(scenario: Scenario) -> Iterator[Finding]:
    for case, repo in dict.fromkeys(list_hidden_evidence(scenario)):
        text = f"its evidence is in {repo[:80]!r}, which is not planted, so no agent can find it"
        yield _make_finding("hidden-evidence", "note", case, text, "plant the repository")


def _collect_texts(world: Sequence[PlantedCommit]) -> dict[str, list[str]]:
    """Every text that each path ever had."""
    found: dict[str, list[str]] = defaultdict(list)
    for commit in world:
        for path, text in commit.files.items():
            found[path].append(text)
    return found


def _note_candidates(scenario: Scenario) -> Iterator[Finding]:
    for case in scenario.candidates:
        cause = scenario.cause_of(case)
        why = "there is no fix" if cause and not cause.fix_prs else "the label is not verified"
        text = f"a candidate, never scored: {why}"
        yield _make_finding("candidate", "note", case.id, text, "verify it and move it to cases")


_CHECKS: Final[Sequence[Callable[[Scenario], Iterator[Finding]]]] = (
    _check_ids,
    _check_references,
    _check_labels,
    _check_duplicates,
    _check_families,
    _check_paths,
    _check_order,
    _check_worlds,
    _check_evidence,
    _note_hidden_evidence,
    _note_candidates,
)
