"""Learning from reviews: every decision of a human at F5 is a label for the kind of a failure.

A model is trained on the labels of a team and accepted only if it is better than what is used now
on failures that are newer than all it learnt from. It answers where its examples support an
answer; the rules answer the rest. Old models are kept, and anyone can go back.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from random import Random

import msgspec

from interlock.journal.connection import Connection, raw_connection, transaction
from interlock.rca.analyst.classifier import Classifier
from interlock.rca.analyst.triage import TriageResult, extract_features, triage_failure
from interlock.rca.intake import decode_failure
from interlock.rca.knowledge.reproductions import name_family
from interlock.rca.knowledge.suites import Suite, iterate_case_views, list_suite_cases, list_suites
from interlock.rca.records import Failure
from interlock.rca.sources.read import SourceLaunch
from interlock.rca.taxonomy import Taxonomy
from interlock.system.errors import UsageError
from interlock.system.statistics import quantile, wilson_interval
from interlock.system.text import plural
from interlock.system.time import parse_timestamp

TEST_SHARE = 0.3
"""The newest labels, which a model is tested on and never sees."""
MIN_TRAINED, MIN_TESTED = 30, 15
"""Causes below which nothing is fitted. To tell a model from chance takes six that only it gets
right and none that it gets wrong: a share that 15 can hold."""
MAX_P = 0.05
_SAMPLES, _SEED = 2_000, 15
_NO_HUMAN = ("rule:", "whoever was asked", "reviewed with")
"""How reviewers are named that are no humans: what they agree with teaches nothing."""

Judge = Callable[[Failure], TriageResult]


class Label(msgspec.Struct, frozen=True):
    """The kind of one failure, as a human gave it. Failures with one cause are one label."""

    failure: Failure
    kind: str
    at: float


class JudgeScore(msgspec.Struct, frozen=True):
    """How often a judge was right on the newest labels, with its 95 % interval."""

    name: str
    right: int
    of: int
    low: float
    high: float
    unsure: int = 0
    """How often it gave no answer; that counts as wrong."""


class Evaluation(msgspec.Struct, frozen=True, kw_only=True):
    """A time split: what was learnt from the older labels, tested on the newer ones."""

    labels: int
    kinds: dict[str, int]
    trained: int = 0
    tested: int = 0
    scores: tuple[JudgeScore, ...] = ()
    gained: int = 0
    """Failures that only the new model gets right."""
    lost: int = 0
    """Failures that only what is used now gets right."""
    p_value: float | None = None
    """McNemar's exact test, two-sided."""
    difference: tuple[float, float] | None = None
    """The 95 % bootstrap interval of the difference of the shares that are right."""
    accepted: bool = False
    why: str = ""


class StoredModel(msgspec.Struct, frozen=True):
    """A model of this project."""

    model_id: int
    status: str
    """active, retired or refused."""
    made_at: float
    evaluation: Evaluation


class LearntTriage:
    """The kind of a failure by examples, and by the rules where none is near."""

    def __init__(self, examples: Sequence[tuple[frozenset[str], str]]) -> None:
        self._classifier = Classifier(examples)

    def triage(self, failure: Failure) -> TriageResult:
        found = self._classifier.predict(extract_features(failure))
        if not found.label:
            return triage_failure(failure)
        reasons = ", ".join(found.reasons)
        return TriageResult(
            found.label, found.confidence, (f"as in reviewed failures with: {reasons}",)
        )


def list_labels(connection: Connection) -> list[Label]:
    """What humans decided about the failures of all suites, oldest first; one for each cause of a
    suite, because its failures are told by one answer."""
    found: list[Label] = []
    for suite in list_suites(connection):
        found += _list_suite_labels(connection, suite)
    return sorted(found, key=lambda label: label.at)


def _list_suite_labels(connection: Connection, suite: Suite) -> Iterable[Label]:
    inputs = {view.case_id: view.input for view in iterate_case_views(connection, suite.suite_id)}
    seen: set[str] = set()
    for case in list_suite_cases(connection, suite.suite_id):
        kind = case.rca.category if case.rca else case.triage.category if case.triage else ""
        if not case.decision or kind in ("", "unknown") or not is_human(case.reviewed_by):
            continue
        given = inputs[case.case_id]
        family = name_family(case.rca.rca_id if case.rca else None, str(given.get("family", "")))
        if family not in seen:
            seen.add(family)
            at = case.started_at or suite.created_at
            yield Label(decode_failure(case.case_id, given), kind, at)


def is_human(reviewer: str) -> bool:
    """Whether that is the name of a person, and not of a rule or an agent."""
    return bool(reviewer) and not reviewer.startswith(_NO_HUMAN)


def list_issue_types(launches: Sequence[SourceLaunch], taxonomy: Taxonomy) -> list[Label]:
    """The defect types that people gave in ReportPortal; equal messages of a launch count once."""
    found: dict[tuple[str, str, str], Label] = {}
    for source in launches:
        for failure in source.failures:
            kind = taxonomy.find_category_of_code(failure.issue_type) or "unknown"
            if failure.auto_analyzed or kind == "unknown":
                continue
            at = parse_timestamp(failure.at) or parse_timestamp(source.launch.started_at) or 0.0
            key = (source.launch.launch_id, failure.message or failure.test_name, kind)
            found.setdefault(key, Label(failure, kind, at))
    return sorted(found.values(), key=lambda label: label.at)


def evaluate_labels(labels: Sequence[Label], current: Judge | None = None) -> Evaluation:
    """How a model of the older labels does on the newer ones, beside trivial judges and what is
    used now; and whether it should take its place."""
    kinds = dict(Counter(label.kind for label in labels).most_common())
    tested = round(len(labels) * TEST_SHARE)
    trained = len(labels) - tested
    found = Evaluation(labels=len(labels), kinds=kinds, trained=trained, tested=tested)
    if trained < MIN_TRAINED or tested < MIN_TESTED:
        need = math.ceil(max(MIN_TRAINED / (1 - TEST_SHARE), MIN_TESTED / TEST_SHARE))
        why = f"{plural(len(labels), 'reviewed cause')}; about {need} are needed to tell"
        return msgspec.structs.replace(found, why=why)
    old, new = labels[:trained], labels[trained:]
    majority = Counter(label.kind for label in old).most_common(1)[0][0]
    judges: dict[str, Judge] = {
        f"always {majority}": lambda _: TriageResult(majority, 1.0, ()),
        "the rules": triage_failure,
        "in use": current or triage_failure,
        "new model": LearntTriage(_make_examples(old)).triage,
    }
    if current is None:
        del judges["in use"]
    answers = {
        name: [judge(label.failure).category for label in new] for name, judge in judges.items()
    }
    scores = tuple(_score(name, given, new) for name, given in answers.items())
    return _decide(
        msgspec.structs.replace(found, scores=scores),
        [one == label.kind for one, label in zip(answers["new model"], new, strict=True)],
        [
            one == label.kind
            for one, label in zip(answers["in use" if current else "the rules"], new, strict=True)
        ],
    )


def _make_examples(labels: Sequence[Label]) -> list[tuple[frozenset[str], str]]:
    return [(extract_features(label.failure), label.kind) for label in labels]


def _score(name: str, answers: Sequence[str], labels: Sequence[Label]) -> JudgeScore:
    right = sum(one == label.kind for one, label in zip(answers, labels, strict=True))
    interval = wilson_interval(right, len(labels))
    low, high = (interval.low, interval.high) if interval else (0.0, 1.0)
    return JudgeScore(
        name, right, len(labels), round(low, 3), round(high, 3), list(answers).count("unknown")
    )


def _decide(found: Evaluation, new: Sequence[bool], old: Sequence[bool]) -> Evaluation:
    gained = sum(one and not other for one, other in zip(new, old, strict=True))
    lost = sum(other and not one for one, other in zip(new, old, strict=True))
    p_value = compute_mcnemar(gained, lost)
    accepted = gained > lost and p_value <= MAX_P
    only = f"only the new model is right on {gained}, only what is used now on {lost}"
    verdict = "better than chance explains" if accepted else "no proof that it is better"
    return msgspec.structs.replace(
        found,
        gained=gained,
        lost=lost,
        p_value=round(p_value, 4),
        difference=_bootstrap_difference(new, old),
        accepted=accepted,
        why=f"of the newest {len(new)}, {only}: {verdict} (p = {p_value:.3f})",
    )


def compute_mcnemar(gained: int, lost: int) -> float:
    """The exact two-sided test of whether two judges differ, by the items only one gets right."""
    of = gained + lost
    tail = sum(math.comb(of, each) for each in range(min(gained, lost) + 1))
    return min(1.0, 2 * tail / math.pow(2, of))


def _bootstrap_difference(new: Sequence[bool], old: Sequence[bool]) -> tuple[float, float]:
    chance = Random(_SEED)  # noqa: S311 - the same labels give the same interval
    steps = [one - other for one, other in zip(new, old, strict=True)]
    drawn = sorted(sum(chance.choices(steps, k=len(steps))) / len(steps) for _ in range(_SAMPLES))
    return round(quantile(drawn, 0.025), 3), round(quantile(drawn, 0.975), 3)


def fit_model(connection: Connection, at: float) -> tuple[Evaluation, StoredModel | None]:
    """Train on all labels, and use the model from now on if the time split says that it is better.
    That one was refused is kept, too, with the reason. There is no model where there are too few
    labels to tell."""
    labels = list_labels(connection)
    evaluation = evaluate_labels(labels, load_judge(connection))
    if evaluation.p_value is None:
        return evaluation, None
    rows = [(label, sorted(bag)) for bag, label in _make_examples(labels)]
    status = "active" if evaluation.accepted else "refused"
    with transaction(connection) as raw:
        if evaluation.accepted:
            raw.execute("update analyst_models set status = 'retired' where status = 'active'")
        raw.execute(
            "insert into analyst_models (status, evaluation, examples, made_at)"
            " values (?, ?, ?, ?)",
            (
                status,
                msgspec.json.encode(evaluation).decode(),
                msgspec.json.encode(rows if evaluation.accepted else []).decode(),
                at,
            ),
        )
    return evaluation, list_models(connection)[-1]


def list_models(connection: Connection) -> list[StoredModel]:
    """All models of the project, oldest first."""
    rows = raw_connection(connection).execute(
        "select model_id, status, made_at, evaluation from analyst_models order by model_id"
    )
    return [
        StoredModel(number, status, at, msgspec.json.decode(text, type=Evaluation))
        for number, status, at, text in rows
    ]


def use_model(connection: Connection, model_id: int | None) -> None:
    """Use that model from now on, or the rules alone. UsageError if it cannot be used."""
    known = {model.model_id: model.status for model in list_models(connection)}
    if model_id is not None and known.get(model_id, "refused") == "refused":
        usable = [str(each) for each, status in known.items() if status != "refused"]
        raise UsageError(
            f"there is no model {model_id} that was accepted; there are: "
            f"{', '.join([*usable, 'rules'])}"
        )
    with transaction(connection) as raw:
        raw.execute("update analyst_models set status = 'retired' where status = 'active'")
        if model_id is not None:
            raw.execute(
                "update analyst_models set status = 'active' where model_id = ?", (model_id,)
            )


def load_judge(connection: Connection) -> Judge | None:
    """The model in use; None where only the rules are."""
    row = (
        raw_connection(connection)
        .execute("select examples from analyst_models where status = 'active'")
        .fetchone()
    )
    if row is None:
        return None
    rows = msgspec.json.decode(row[0], type=list[tuple[str, list[str]]])
    return LearntTriage([(frozenset(bag), label) for label, bag in rows]).triage


def fit_if_due(connection: Connection, every: int, at: float) -> StoredModel | None:
    """Fit if so many causes were reviewed since the last time; 0 is never. Returns a model that
    was made."""
    models = list_models(connection)
    before = models[-1].evaluation.labels if models else 0
    # Counted at first without reading the failures; rules may have reviewed some of them.
    (reviewed,) = (
        raw_connection(connection)
        .execute(
            "select count(distinct coalesce(rca_id, -case_no)) from rca_cases where decision != ''"
        )
        .fetchone()
    )
    if not every or reviewed < before + every or len(list_labels(connection)) < before + every:
        return None
    _, made = fit_model(connection, at)
    return made
