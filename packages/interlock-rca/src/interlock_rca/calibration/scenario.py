"""Scenarios: failures whose causes are known, and what a perfect agent would answer about them.

A scenario is a file in the seeds' JSON form or in a YAML form, or one that comes with Interlock.
Field names are those of the seeds' form and are never renamed; fields of our own are marked. A
field that nobody reads becomes a note, so that nothing is lost in silence. Whether labels make
sense is for `scenario_check.py` to say.
"""

import hashlib
from collections.abc import Iterator, Mapping
from functools import cache, cached_property
from importlib import resources
from pathlib import Path
from typing import Any, Union, get_args, get_origin, get_type_hints

import msgspec

from interlock.system.errors import CircuitError, SourceError
from interlock.system.yaml_text import MAX_CHARACTERS, read_yaml
from interlock_calibrate.benchmark import ScenarioFile, Split

NumberOrWord = int | str
"""An id that some files write as a number and some as a word."""


class RootCause(msgspec.Struct, frozen=True, kw_only=True):
    """What explains failures. `culprit` is ours: repo@id of the planted commit that brought it."""

    id: str
    title: str = ""
    description: str = ""
    defect_type: str = ""
    category: str = ""
    component: str = ""
    affected_versions: tuple[str, ...] = ()
    jira_id: str = ""
    required_keywords: tuple[str, ...] = ()
    keyword_threshold: int = 0
    relevant_repos: tuple[str, ...] = ()
    fix_prs: tuple[str, ...] = ()
    verified: bool = False
    smoking_gun: str = ""
    culprit: str = ""


class ScenarioSymptom(msgspec.Struct, frozen=True, kw_only=True):
    """A story that failures tell again and again."""

    id: str
    name: str = ""
    error_pattern: str = ""
    component: str = ""
    maps_to_rca: str = ""


class ExpectedRecall(msgspec.Struct, frozen=True, kw_only=True):
    match: bool = False
    prior_rca_id: NumberOrWord = 0
    symptom_id: NumberOrWord = 0
    confidence: float = 0.0


class ExpectedTriage(msgspec.Struct, frozen=True, kw_only=True):
    symptom_category: str = ""
    severity: str = ""
    defect_type_hypothesis: str = ""
    candidate_repos: tuple[str, ...] = ()
    skip_investigation: bool = False
    cascade_suspected: bool = False


class SelectedRepo(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    reason: str = ""


class ExpectedResolve(msgspec.Struct, frozen=True, kw_only=True):
    selected_repos: tuple[SelectedRepo, ...] = ()


class ExpectedInvest(msgspec.Struct, frozen=True, kw_only=True):
    rca_message: str = ""
    defect_type: str = ""
    component: str = ""
    convergence_score: float = 0.0
    evidence_refs: tuple[str, ...] = ()


class ExpectedCorrelate(msgspec.Struct, frozen=True, kw_only=True):
    is_duplicate: bool = False
    linked_rca_id: NumberOrWord = 0
    confidence: float = 0.0
    cross_version_match: bool = False


class ExpectedReview(msgspec.Struct, frozen=True, kw_only=True):
    """`loop_target` is ours: where a case goes that is sent back."""

    decision: str = ""
    loop_target: str = ""


class LabelledCase(msgspec.Struct, frozen=True, kw_only=True):
    """One failed test and the truth about it. All after `rp_item_id` is ours."""

    id: str
    version: str = ""
    job: str = ""
    test_name: str = ""
    test_id: NumberOrWord = ""
    error_message: str = ""
    log_snippet: str = ""
    symptom_id: str = ""
    rca_id: str = ""
    expected_path: tuple[str, ...] = ()
    expected_recall: ExpectedRecall | None = None
    expected_triage: ExpectedTriage | None = None
    expected_resolve: ExpectedResolve | None = None
    expected_invest: ExpectedInvest | None = None
    expected_correlate: ExpectedCorrelate | None = None
    expected_review: ExpectedReview | None = None
    expect_recall_hit: bool = False
    expect_skip: bool = False
    expect_cascade: bool = False
    expected_loops: int = 0
    rp_launch_id: NumberOrWord = 0
    rp_item_id: NumberOrWord = 0
    family: str = ""
    """Cases with one cause; if empty, those that share `rca_id`."""
    split: Split = ""
    verified: bool = False
    follows: str = ""
    """An earlier case that this one repeats, duplicates, or comes from."""
    first_invests: tuple[ExpectedInvest, ...] = ()
    """What a perfect agent says at earlier visits of F3; `expected_invest` is for the last."""
    first_reviews: tuple[ExpectedReview, ...] = ()
    """The same for F5."""


class ScenarioRepo(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    path: str = ""
    purpose: str = ""
    branch: str = ""
    relevant_to_rcas: tuple[str, ...] = ()
    is_red_herring: bool = False


class ScenarioRepos(msgspec.Struct, frozen=True, kw_only=True):
    repos: tuple[ScenarioRepo, ...] = ()


class PlantedCommit(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One commit of a planted repository. `id` is our own name for it and is not told to git."""

    author: str
    date: str
    message: str
    id: str = ""
    files: dict[str, str] = {}
    """Path -> the whole text from now on."""
    remove: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()


class Scenario(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """`cases` are scored, `candidates` are only kept in sight."""

    name: str
    description: str = ""
    rcas: tuple[RootCause, ...] = ()
    symptoms: tuple[ScenarioSymptom, ...] = ()
    cases: tuple[LabelledCase, ...] = ()
    candidates: tuple[LabelledCase, ...] = ()
    workspace: ScenarioRepos = ScenarioRepos()
    dry_capped_metrics: tuple[str, ...] = ()
    worlds: dict[str, tuple[PlantedCommit, ...]] = {}
    """Repository -> its history, oldest first."""

    @cached_property
    def causes(self) -> dict[str, RootCause]:
        return {cause.id: cause for cause in self.rcas}

    @cached_property
    def case_by_id(self) -> dict[str, LabelledCase]:
        return {case.id: case for case in self.cases}

    @cached_property
    def red_herrings(self) -> frozenset[str]:
        return frozenset(repo.name for repo in self.workspace.repos if repo.is_red_herring)

    @property
    def digest(self) -> str:
        """One word for all of it: results of other labels are not comparable."""
        return hashlib.sha256(msgspec.json.encode(self, order="sorted")).hexdigest()[:16]

    @property
    def verified_count(self) -> int:
        return sum(
            case.verified or (cause is not None and cause.verified)
            for case in self.cases
            for cause in (self.cause_of(case),)
        )

    @property
    def has_world(self) -> bool:
        return bool(self.worlds)

    def cause_of(self, case: LabelledCase) -> RootCause | None:
        return self.causes.get(case.rca_id)

    def family_of(self, case: LabelledCase) -> str:
        """Cases without a cause are families of one."""
        return case.family or case.rca_id or f"alone:{case.id}"

    def of_split(self, split: Split) -> "Scenario":
        """The same scenario with the cases of one split alone."""
        kept = tuple(case for case in self.cases if case.split == split)
        return msgspec.structs.replace(self, cases=kept)


MAX_BYTES = 20_000_000
_SHIPPED_FOLDER = resources.files("interlock_rca.calibration") / "scenarios"
_ENVELOPE_FIELDS = ("kind", "version", "metadata")
_RUNTIME_FIELDS = ("rp_issue_type", "rp_auto_analyzed", "expected_verdict")
"""Fields of the seeds' form that are no labels."""


def list_shipped_scenarios() -> list[str]:
    """The names of the scenarios that come with Interlock."""
    return sorted(
        each.name.removesuffix(".yaml")
        for each in _SHIPPED_FOLDER.iterdir()
        if each.name.endswith(".yaml")
    )


def find_scenario(name: str) -> ScenarioFile[Scenario]:
    """One that comes with Interlock, by its name, or a file, by its path."""
    if name in list_shipped_scenarios():
        return read_scenario((_SHIPPED_FOLDER / f"{name}.yaml").read_bytes(), f"{name}.yaml")
    path = Path(name)
    if not path.is_file():
        known = ", ".join(list_shipped_scenarios())
        raise SourceError(f"there is no scenario or file {name!r}; scenarios are {known}")
    try:
        with path.open("rb") as file:
            return read_scenario(file.read(MAX_BYTES + 1), name)
    except OSError as error:
        raise SourceError(f"{name} cannot be read: {error.strerror}") from None


def read_scenario(content: bytes, file: str) -> ScenarioFile[Scenario]:
    """JSON if it looks like JSON, else YAML."""
    if len(content) > MAX_BYTES:
        raise SourceError(f"{file}: larger than {MAX_BYTES:,} bytes; split the scenario")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SourceError(f"{file}: byte {error.start} is not UTF-8; save it as UTF-8") from None
    value = _read_json(text, file) if text.lstrip()[:1] in ("{", "[") else _read_yaml(text, file)
    plain = _unwrap(_drop_nulls(value), file)
    try:
        scenario = msgspec.convert(plain, Scenario)
    except msgspec.ValidationError as error:
        hint = "; put quotes around it" if "`str`, got" in str(error) else ""
        raise SourceError(f"{file}: {str(error).replace('`', '')}{hint}") from None
    return ScenarioFile(scenario, tuple(_list_unread(plain, Scenario, "")))


def _read_json(text: str, file: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise SourceError(f"{file}: not valid JSON: {error}") from None


def _read_yaml(text: str, file: str) -> Any:
    if len(text) > MAX_CHARACTERS:
        most = f"{MAX_CHARACTERS:,} characters"
        raise SourceError(f"{file}: a YAML scenario may have at most {most}; write it as JSON")
    try:
        return read_yaml(text, file).value
    except CircuitError as error:
        raise SourceError(str(error)) from None


def _drop_nulls(value: Any) -> Any:
    """Absent and null are the same: some writers say null for an empty list."""
    if isinstance(value, dict):
        return {name: _drop_nulls(each) for name, each in value.items() if each is not None}
    if isinstance(value, list):
        return [_drop_nulls(each) for each in value]
    return value


def _unwrap(value: Any, file: str) -> dict[str, Any]:
    """Without the envelope that the YAML form may have."""
    if not isinstance(value, dict):
        raise SourceError(f"{file}: a scenario is an object with name, rcas, symptoms and cases")
    metadata = value.get("metadata")
    plain = {name: each for name, each in value.items() if name not in _ENVELOPE_FIELDS}
    if isinstance(metadata, dict):
        plain = {
            name: metadata[name] for name in ("name", "description") if name in metadata
        } | plain
    if "source_pack" in plain:
        plain.setdefault("workspace", plain.pop("source_pack"))
    if "cases" not in plain:
        raise SourceError(f"{file}: cases are missing; a scenario has name, rcas and cases")
    return plain


def _list_unread(value: Any, kind: Any, place: str) -> Iterator[str]:
    """The places in a plain value that no record has a field for."""
    if get_origin(kind) is Union or type(kind).__name__ == "UnionType":
        kind = next((each for each in get_args(kind) if each is not type(None)), Any)
    arguments = get_args(kind)
    if isinstance(value, list) and arguments:
        for number, each in enumerate(value):
            yield from _list_unread(each, arguments[0], f"{place}[{number}]")
    elif isinstance(value, dict) and isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        yield from _list_unread_fields(value, _list_field_types(kind), place)


@cache
def _list_field_types(record: type) -> dict[str, Any]:
    return get_type_hints(record)


def _list_unread_fields(
    value: Mapping[str, Any], kinds: Mapping[str, Any], place: str
) -> Iterator[str]:
    for name, each in value.items():
        here = f"{place}.{name}" if place else name
        if name in kinds:
            yield from _list_unread(each, kinds[name], here)
        elif name not in _RUNTIME_FIELDS:
            yield here
