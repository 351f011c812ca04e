"""The composition root: from words of a user to concrete parts. The only room that names them all.

Agents are a table: a word before the colon, and what makes a carrier of the rest. What a circuit
has beside its table is in `rca.py`.
"""

import os
import secrets
import shlex
import shutil
import tomllib
from collections.abc import Callable, Collection, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from interlock.casework import papers as rca_papers
from interlock.core.circuit import HUMAN, Circuit, Role, Step
from interlock.core.errors import SourceError
from interlock.core.format import proper_name
from interlock.dispatch.acp.terms import Terms
from interlock.dispatch.answerers import EVERYBODY, Answerers
from interlock.dispatch.batch import SIZE, BatchDesk, single
from interlock.dispatch.briefer import Gauge, PlainBriefer
from interlock.dispatch.carrier import Ask, Carrier, Clock, Reply
from interlock.dispatch.case_folder import Names, plain_names
from interlock.dispatch.command import CommandAgent
from interlock.dispatch.file import PATIENCE, FileDesk
from interlock.dispatch.herald import Address, Herald
from interlock.dispatch.human import HumanDesk
from interlock.dispatch.manual import ManualDesk
from interlock.dispatch.program import Unprompted
from interlock.dispatch.pull import PullDesk
from interlock.dispatch.script import ScriptAgent, read_script
from interlock.dispatch.watch import Mode
from interlock.runner.library import read_text
from interlock.wiring.acp import acp_agent
from interlock.wiring.agents import CLI_AGENTS, check_tables, cli_agent

ROOT = ".interlock/runs"
DATABASE = Path(".interlock") / "interlock.db"
PARALLEL = 8
RCA = "rca"
ACP = "acp"
PULL = "mcp"
"""The carrier whose asks are pulled by workers."""
_MOST_SCRIPT = 4_000_000


class Notify(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Who is told what happens in a run."""

    bell: bool = True
    command: list[str] = []
    webhook: str = ""
    secret_env: str = "INTERLOCK_WEBHOOK_SECRET"  # noqa: S105 - a variable's name
    """The environment variable that holds the secret, never the secret itself."""


class Calibrating(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a project says about its calibrations."""

    prices: dict[str, Any] = {}
    """What a million tokens cost: input, output, currency."""


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a project may set in interlock.toml; environment and flags go before it."""

    db: str | None = None
    parallel: int | None = None
    agents: dict[str, str] = {}
    agent: dict[str, dict[str, Any]] = {}
    slots: dict[str, int] = {}
    budget: dict[str, Any] = {}
    inbox: Answerers = EVERYBODY
    notify: Notify = Notify()
    thresholds: dict[str, Any] = {}
    acp: Terms = Terms()
    repo: list[dict[str, Any]] = []
    last_green: str | dict[str, str] = ""
    defect_codes: dict[str, str] = {}
    calibrate: Calibrating = Calibrating()


def settings(project: Path) -> Settings:
    """The project's settings, with INTERLOCK_* from the environment on top."""
    path = project / "interlock.toml"
    found = Settings()
    if path.exists():
        try:
            table = tomllib.loads(read_text(path, 1_000_000))
            found = msgspec.convert(table, Settings)
        except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
            raise SourceError(f"{path}: {error}") from None
    check_tables(found.agent)
    db = os.environ.get("INTERLOCK_DB") or found.db
    parallel = os.environ.get("INTERLOCK_PARALLEL") or found.parallel
    return msgspec.structs.replace(found, db=db, parallel=_places(parallel))


def _places(given: str | int | None) -> int | None:
    """How many dispatches at once, if it is said."""
    if given is None:
        return None
    if not str(given).isdecimal() or int(given) < 1:
        raise SourceError(f"parallel (INTERLOCK_PARALLEL) must be a number from 1, not {given!r}")
    return int(given)


def database(project: Path, flag: Path | None) -> Path:
    named = settings(project).db
    path = flag or (project / named if named else project / DATABASE)
    if path.is_dir():
        raise SourceError(f"the database {path} is a folder; name a file, for example {DATABASE}")
    return path


def answers_folder(db: Path) -> Path:
    """Where `interlock answer` leaves what a human said."""
    return db.with_name(f"{db.name}.answers")


def pull_folder(db: Path) -> Path:
    """Where workers that pull find the coordinator."""
    return db.with_name(f"{db.name}.pull")


def queries_folder(db: Path) -> Path:
    """Where agents leave their questions to a human."""
    return db.with_name(f"{db.name}.queries")


class Files(msgspec.Struct, frozen=True):
    """How asks that no agent takes travel as files: the word of a carrier, and its settings."""

    dispatch: str = ""
    root: str = ROOT
    watch: Mode = "auto"
    batch_size: int = SIZE


def agents_by_role(
    circuit: Circuit, given: Mapping[str, str], dispatch: str = ""
) -> dict[str, str]:
    """Who answers each role of the circuit; '' in `given` names the one for all others, else they
    are carried by `dispatch`."""
    roles = {step.role for step in circuit.steps.values()}
    for role in given:
        if role and role not in roles:
            raise SourceError(
                f"no step has the role {role!r}; roles are {', '.join(sorted(roles))}"
            )
    others = given.get("") or dispatch
    chosen = {role: given.get(role) or others for role in sorted(roles - {HUMAN})}
    if HUMAN in given:
        chosen[HUMAN] = given[HUMAN]
    _refuse_analyst(circuit, chosen)
    missing = [role for role, spec in chosen.items() if not spec]
    if missing:
        raise SourceError(
            f"who answers for {', '.join(missing)}? "
            f"Say it with --agent {missing[0]}=exec:COMMAND or --agent {missing[0]}=script:FILE, "
            "or with --dispatch file, batch-file, manual or mcp for all that have no agent"
        )
    return chosen


def _refuse_analyst(circuit: Circuit, chosen: Mapping[str, str]) -> None:
    """The built-in analyst knows one circuit, and judges nothing of its own."""
    if BASIC in chosen.values() and circuit.name != RCA:
        raise SourceError(f"the built-in analyst answers only for {RCA}, not for {circuit.name}")
    if chosen.get(HUMAN) == BASIC:
        raise SourceError(
            "the built-in analyst reviews nothing: use --review auto or human, or name who "
            "reviews with --dispatch or --agent human=AGENT"
        )


def split_agent(word: str) -> tuple[str, str]:
    """`ROLE=SPEC`, or `SPEC` alone for every role."""
    role, equals, spec = word.partition("=")
    return (role, spec) if equals and proper_name(role) else ("", word)


def carriers(
    specs: Mapping[str, str],
    db: Path,
    clock: Clock,
    filed: Callable[[str], Carrier] | None = None,
    policy: Answerers = EVERYBODY,
) -> dict[str, Carrier]:
    """A carrier per role; roles with the same words share one. `filed` makes those of files, and
    the `policy` says who may answer at the inbox."""
    made: dict[str, Carrier] = {}
    for spec in specs.values():
        if spec not in made:
            given = filed if spec in (*FILED, PULL) else None
            made[spec] = given(spec) if given else agent(spec, clock, db=db)
    by_role = {role: made[spec] for role, spec in specs.items()}
    by_role.setdefault(HUMAN, HumanDesk(answers_folder(db), clock, policy))
    return by_role


def herald(notify: Notify, clock: Clock, complain: Callable[[str], None]) -> Herald | None:
    """Who carries notices out of the house, if anybody is to hear them."""
    if not notify.command and not notify.webhook:
        return None
    if notify.command and shutil.which(notify.command[0]) is None:
        problem = _not_runnable(notify.command[0])
        raise SourceError(f"interlock.toml, [notify] command: {problem}")
    address = None
    if notify.webhook:
        if not notify.webhook.startswith(("https://", "http://")):
            raise SourceError("interlock.toml, [notify] webhook: give an http(s) address")
        address = Address(notify.webhook, os.environ.get(notify.secret_env, "").encode())
    return Herald(clock, notify.command, address, complain)


def agent(
    spec: str,
    clock: Clock,
    environment: Mapping[str, str] = os.environ,
    db: Path = DATABASE,
) -> Carrier:
    kind, _, rest = spec.partition(":")
    if spec == BASIC:
        return Vacancy()
    if kind in CLI_AGENTS:
        return cli_agent(kind, rest, settings(Path()).agent, db, clock, environment)
    if kind == ACP and rest:
        terms, queries = settings(Path()).acp, queries_folder(db)
        return acp_agent(_argv(kind, rest), terms, db, queries, clock, environment)
    if kind not in AGENTS or not rest:
        known = ", ".join((BASIC, *(f"{name}:…" for name in (ACP, *AGENTS))))
        raise SourceError(f"{spec!r} names no agent; use {known} or a name of 'interlock agents'")
    return AGENTS[kind](rest, clock, environment)


def file_carrier(
    files: Files,
    circuit: Circuit,
    clock: Clock,
    gauge: Gauge,
    tokens: int,
    db: Path = DATABASE,
) -> Callable[[str], Carrier]:
    """What makes the carrier of a word in FILED, or of PULL, which has its place beside the
    database."""

    def made(word: str) -> Carrier:
        if word != PULL:
            return FILED[word](files, circuit, clock, gauge, tokens)
        nonce = partial(secrets.token_hex, 8)
        return PullDesk(pull_folder(db), queries_folder(db), clock, gauge, nonce)

    return made


def by_hand(carriers: Mapping[str, Carrier]) -> frozenset[str]:
    """The roles whose answers come by a later command: nobody sits and waits for them."""
    return _roles_of(carriers, HumanDesk | ManualDesk)


def written_by_hand(carriers: Mapping[str, Carrier]) -> frozenset[str]:
    """The roles whose asks are written out for a later command, not asked at the inbox."""
    return _roles_of(carriers, ManualDesk)


def _roles_of(carriers: Mapping[str, Carrier], kind: Any) -> frozenset[str]:
    return frozenset(role for role, each in carriers.items() if isinstance(each, kind))


def with_patience(circuit: Circuit, carriers: Mapping[str, Carrier]) -> Circuit:
    """Steps without a timeout get one where a watcher that died would never be missed; those that
    are pulled have theirs counted by their carrier, from when somebody took them."""
    patient = {
        role
        for role, each in carriers.items()
        if isinstance(each, FileDesk | BatchDesk) and not isinstance(each, ManualDesk)
    }
    pulled = _roles_of(carriers, PullDesk)
    steps = {
        name: msgspec.structs.replace(step, timeout=_limit(step, patient, pulled))
        for name, step in circuit.steps.items()
    }
    return msgspec.structs.replace(circuit, steps=steps)


def _limit(step: Step, patient: Collection[str], pulled: Collection[str]) -> float | None:
    if step.role in pulled:
        return None
    return PATIENCE if step.role in patient and step.timeout is None else step.timeout


def roles_with(circuit: Circuit, slots: Mapping[str, int]) -> dict[str, Role]:
    """The circuit's roles, with the places a user gave them."""
    for name, places in slots.items():
        if name not in circuit.roles or places < 1:
            known = ", ".join(sorted(circuit.roles))
            raise SourceError(f"slots {name}={places}: give at least 1 to one of {known}")
    return {
        name: msgspec.structs.replace(role, slots=slots.get(name, role.slots))
        for name, role in circuit.roles.items()
    }


def _script(rest: str, clock: Clock, _environment: Mapping[str, str]) -> Carrier:
    path = Path(rest)
    return ScriptAgent(read_script(read_text(path, _MOST_SCRIPT), str(path)), clock)


def _argv(kind: str, rest: str) -> list[str]:
    """The words of a command that is there."""
    try:
        argv = shlex.split(rest)
    except ValueError as error:
        raise SourceError(f"{kind}:{rest}: {error}") from None
    if not argv or shutil.which(argv[0]) is None:
        raise SourceError(f"{kind}:{rest}: {_not_runnable(argv[0] if argv else '')}")
    return argv


def _command(rest: str, _clock: Clock, environment: Mapping[str, str]) -> Carrier:
    argv = _argv("exec", rest)
    return CommandAgent(argv, environment)


def _not_runnable(name: str) -> str:
    if "/" in name and Path(name).is_file():
        return f"{name!r} may not be executed; chmod +x it, or name its interpreter first"
    near = f"; did you mean './{name}'?" if name and Path(name).is_file() else ""
    return f"there is no command {name!r} to run{near}"


BASIC = "basic"
"""The built-in analyst. It answers only for circuits it knows."""


class Vacancy(Unprompted):
    """The place of the built-in analyst, until a run is open that it can look into."""

    def __init__(self) -> None:
        super().__init__(_knows_nothing)


def _knows_nothing(_ask: Ask) -> Reply | None:
    raise SourceError("the built-in analyst answers only for the circuit rca")


AGENTS: dict[str, Callable[[str, Clock, Mapping[str, str]], Carrier]] = {
    "exec": _command,
    "script": _script,
}


def _file(files: Files, circuit: Circuit, clock: Clock, _gauge: Gauge, _tokens: int) -> Carrier:
    return FileDesk(Path(files.root), clock, names=names(circuit, files.root), mode=files.watch)


def _manual(files: Files, circuit: Circuit, clock: Clock, _gauge: Gauge, _tokens: int) -> Carrier:
    return ManualDesk(Path(files.root), clock, names=names(circuit, files.root), mode="poll")


def _batch(files: Files, circuit: Circuit, clock: Clock, gauge: Gauge, tokens: int) -> Carrier:
    return BatchDesk(
        FileDesk(Path(files.root), clock, names=names(circuit, files.root), mode=files.watch),
        clock,
        PlainBriefer(circuit.name, gauge),
        gauge,
        workspace=Path(),
        size=files.batch_size,
        tokens=tokens,
        phase_of=rca_papers.phase_of if circuit.name == RCA else single,
    )


def names(circuit: Circuit, root: str) -> Names:
    """What the papers of a circuit's dispatches are called in the folder of that name."""
    return rca_papers.names(Path(root)) if circuit.name == RCA else plain_names


FILED: dict[str, Callable[[Files, Circuit, Clock, Gauge, int], Carrier]] = {
    "batch-file": _batch,
    "file": _file,
    "manual": _manual,
}
