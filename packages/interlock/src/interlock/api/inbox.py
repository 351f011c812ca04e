"""Questions that wait for a person, and their answers: gates, questions about runs, agents'
queries.

All kinds are one list of one record, and one function takes an answer: it checks who answers, the
shape of the answer, and whether it comes too late. Nothing is saved before all of that is right.
"""

import getpass
import os
import time
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any, Final, NoReturn

import msgspec

from interlock.api.work import load_circuit
from interlock.carriers.human import (
    HumanAnswer,
    encode_refused,
    find_saved_answer,
    list_answered,
    list_refused,
    write_answer,
    write_answers,
    write_refused_answer,
)
from interlock.carriers.queries import (
    AgentQuery,
    QueryReply,
    find_query,
    find_reply,
    is_query_id,
    list_open_queries,
    write_reply,
)
from interlock.engine.circuit import ARTIFACT, HUMAN, Circuit, Step
from interlock.journal.address import DatabaseAddress
from interlock.journal.connection import Connection
from interlock.journal.database import find_writer, open_reader, open_writer
from interlock.journal.history import (
    OpenGate,
    find_question,
    list_family,
    list_open_dispatch_ids,
    list_open_questions,
)
from interlock.journal.journal import Journal, Refusal, TurnWrites
from interlock.journal.ownership import own_run
from interlock.journal.runs import find_run
from interlock.journal.usage import OpenInquiry, find_inquiry, list_open_inquiries
from interlock.runtime.application import QuestionGroup, find_application
from interlock.runtime.budget import RAISE, STOP, read_limits
from interlock.runtime.fence import PromptPart, split_prompt
from interlock.runtime.settings import RunConfig, Settings, open_answers, open_queries
from interlock.system.errors import (
    InterlockError,
    NotFoundError,
    SourceError,
    StateError,
    StoreError,
)
from interlock.system.strict_json import read_json
from interlock.system.time import format_time


class AnswerRequest(msgspec.Struct, frozen=True):
    """An answer as somebody gives it."""

    question: str
    decision: str
    message: str
    fields: dict[str, Any]
    by: str
    user: str
    """The user who gives it."""
    family: bool | None
    """True if it is for the whole family; None leaves that to the circuit."""
    version: str = ""
    """The version of the question that the answerer saw; empty if nobody compares it."""

    @property
    def question_id(self) -> int:
        """Return the number of a gate, or of a question about a run."""
        word = self.question
        if not word.isascii() or not word.removeprefix("-").isdigit() or len(word) > 18:
            raise SourceError(
                f"{word!r} is not the number of a question; 'interlock inbox' lists them"
            )
        return int(word)

    @property
    def giver(self) -> str:
        return self.by or self.user


class PreparedAnswer(msgspec.Struct, frozen=True):
    """An answer that may be saved: its run, its questions and its content."""

    run_id: int
    data: dict[str, Any]
    also: Sequence[int] = ()


class SavedAnswer(msgspec.Struct, frozen=True):
    """An answer that was checked and saved."""

    question_id: int | str
    run_id: int
    taken_now: bool
    """True if a running process takes the answer now."""
    also: Sequence[int]
    """Other questions that the answer settles, too."""
    then: str
    """What happens next, in a sentence."""


class LateAnswer(msgspec.Struct, frozen=True):
    """An answer that does not count because another came first or the question was settled, and the
    sentence about that."""

    run_id: int
    data: dict[str, Any]
    sentence: str


def find_user() -> str:
    """Return the user at the terminal."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"user {os.getuid()}"


def give_answer(
    path: DatabaseAddress, settings: Settings, given: AnswerRequest, at: float | None = None
) -> SavedAnswer:
    """Save an answer where the run will find it; SourceError or StateError if it cannot be one.

    The first answer to a question counts; later ones are refused and journaled.
    """
    at = time.time() if at is None else at
    if is_query_id(given.question):
        return _answer_query(path, settings, given, at)
    given.question_id  # noqa: B018 - refuse a word that is not a number before anything else
    with open_reader(path) as connection:
        prepared = prepare_answer(connection, settings, given, at)
    saved = (
        _save_answer(path, given, prepared) if isinstance(prepared, PreparedAnswer) else prepared
    )
    if isinstance(saved, LateAnswer):
        record_refusal(path, saved, given, at)
        raise StateError(f"{saved.sentence}; the answer changes nothing, and is kept as refused")
    return saved


def _save_answer(
    path: DatabaseAddress, given: AnswerRequest, found: PreparedAnswer
) -> SavedAnswer | LateAnswer:
    mail = open_answers(path)
    answer = HumanAnswer(given.question_id, given.giver, found.data, found.run_id)
    if not write_answer(mail, answer):
        first = find_saved_answer(mail, given.question_id)
        by = f" by {first.by}" if first else ""
        sentence = f"question {given.question_id} is answered already{by}"
        return LateAnswer(found.run_id, found.data, sentence)
    also = write_answers(mail, answer, found.also)
    working = find_writer(path, found.run_id) is not None
    then = f"'interlock resume {found.run_id}' continues with it"
    if working:
        then = "the running process takes it"
    return SavedAnswer(given.question_id, found.run_id, working, also, then)


def _answer_query(
    path: DatabaseAddress, settings: Settings, given: AnswerRequest, at: float
) -> SavedAnswer:
    """Save the reply to an agent's query; the agent gets it when it asks again."""
    mail, number = open_queries(path), given.question
    with open_reader(path) as connection:
        found = [each for each in _list_queries(connection, path) if each.question_id == number]
    if not found and find_reply(mail, number):
        _refuse_query(path, given, at)
    if not found:
        raise NotFoundError(f"question {number} is not open; 'interlock inbox' lists them")
    _check_version(found[0], given)
    check_may_answer(settings, found[0].kind, given.by, given.user)
    options = found[0].options
    if options and given.decision not in options:
        raise SourceError(f"question {number} takes {', '.join(options)}, not {given.decision!r}")
    if given.fields:
        raise SourceError(f"question {number} takes no fields; say it with -m; nothing was saved")
    reply = QueryReply(number, given.decision, given.message, given.giver, at)
    if not write_reply(mail, reply):
        _refuse_query(path, given, at)
    return SavedAnswer(number, found[0].run_id, True, (), "the agent that asked gets it")


def _refuse_query(path: DatabaseAddress, given: AnswerRequest, at: float) -> NoReturn:
    """Journal a second reply to a query as refused, and raise StateError."""
    query, first = (find(open_queries(path), given.question) for find in (find_query, find_reply))
    by = f" by {first.by}" if isinstance(first, QueryReply) else ""
    sentence = f"question {given.question} is answered already{by}"
    if isinstance(query, AgentQuery):
        data = {"decision": given.decision, "comment": given.message}
        late = LateAnswer(query.run_id, data, sentence)
        record_refusal(path, late, given, at, query.dispatch_id)
    raise StateError(f"{sentence}; the answer changes nothing, and is kept as refused")


def prepare_answer(
    connection: Connection, settings: Settings, given: AnswerRequest, at: float
) -> PreparedAnswer | LateAnswer:
    """Check an answer and return it, or the refusal of one that is late; SourceError or StateError
    if it cannot be one."""
    found = list_open_questions(connection, given.question_id)
    if found:
        return _answer_gate(connection, settings, given, found[0], at)
    inquiry = find_inquiry(connection, given.question_id)
    if inquiry is not None:
        return _answer_inquiry(settings, given, inquiry)
    return _answer_late(connection, given)


def _answer_gate(
    connection: Connection,
    settings: Settings,
    given: AnswerRequest,
    question: OpenGate,
    at: float,
) -> PreparedAnswer | LateAnswer:
    run = find_run(connection, question.run_id)
    circuit, config = load_circuit(run), msgspec.convert(run.options, RunConfig)
    application, step = find_application(circuit.name), circuit.steps[question.step]
    _check_version(_describe_gate(question, step), given)
    _refuse_others(question, config.agents)
    check_may_answer(settings, step.name, given.by, given.user)
    data = shape_answer(step, given.decision, given.message, given.fields)
    if problem := application.check_review(config.application_config, step.name, data):
        raise SourceError(f"{problem.removesuffix('.')}; nothing was saved")
    due = _find_deadline(step, question.asked_at)
    if due and at >= due:
        # Nobody may be at work to notice; whoever goes on with the run will.
        sentence = (
            f"question {question.question_id} ran out of time at {format_time(due)}; "
            f"'interlock resume {run.run_id}' continues without an answer"
        )
        return LateAnswer(run.run_id, data, sentence)
    also: list[int] = []
    if step.family if given.family is None else given.family:
        number = question.question_id
        for group in application.group_questions(connection, run.run_id):
            if number in group.question_ids:
                also = sorted(each for each in group.question_ids if each != number)
        also = also or [each.question_id for each in list_family(connection, question)]
    return PreparedAnswer(run.run_id, data, also)


def _answer_inquiry(
    settings: Settings, given: AnswerRequest, inquiry: OpenInquiry
) -> PreparedAnswer | LateAnswer:
    check_may_answer(settings, inquiry.kind, given.by, given.user)
    comment = {"comment": given.message} if given.message else {}
    data = {"decision": given.decision, **comment, **given.fields}
    if inquiry.answered_at is not None:
        when = format_time(inquiry.answered_at)
        by = f" by {inquiry.answered_by}" if inquiry.answered_by else ""
        return LateAnswer(
            inquiry.run_id, data, f"question {given.question_id} was settled{by} at {when}"
        )
    _check_version(_describe_inquiry(inquiry), given)
    if given.decision not in (RAISE, STOP):
        raise SourceError(f"answer raise or stop, not {given.decision!r}; nothing was saved")
    if given.decision == RAISE and not given.fields:
        raise SourceError("name the new limits: raise --set tokens=200000; nothing was saved")
    read_limits(given.fields if given.decision == RAISE else {})
    return PreparedAnswer(inquiry.run_id, data)


def _answer_late(connection: Connection, given: AnswerRequest) -> LateAnswer:
    """Return the refusal of an answer to a settled question."""
    found = find_question(connection, given.question_id)
    if found is None:
        raise NotFoundError(
            f"question {given.question_id} is not open; 'interlock inbox' lists them"
        )
    how = f"was answered by {found.answered_by}" if found.answered_by else "is not open any more"
    if found.signal == "timeout":
        how = "ran out of time"
    when = f" at {format_time(found.settled_at)}" if found.settled_at else ""
    anew = found.now_asked and list_open_questions(connection, found.now_asked)
    then = f"; {found.case_id} is asked anew: question {found.now_asked}" if anew else ""
    data = {"decision": given.decision, **given.fields}
    sentence = f"question {given.question_id} {how}{when}{then}"
    return LateAnswer(found.run_id, data, sentence)


def shape_answer(
    step: Step, decision: str, message: str, fields: Mapping[str, Any]
) -> dict[str, Any]:
    """Return a decision in the words of the step: its signal, or the field that takes decisions."""
    known = step.shape.fields
    place = "text" if "text" in known and "comment" not in known else "comment"
    data: dict[str, Any] = {place: message} if message else {}
    for name, value in fields.items():
        _set_field(data, name, value, step)
    taker = _find_decision_field(step, decision)
    if not taker and decision in step.signals and decision != ARTIFACT:
        return {"signal": decision, "data": data}
    data = {taker or "decision": decision, **data}
    problem = step.shape.find_problem(data)
    if problem is not None:
        others = [name for name in step.signals if name != ARTIFACT]
        hint = f" (or one of the signals {', '.join(others)})" if others else ""
        raise SourceError(f"{problem}{hint}; nothing was saved")
    return data


def _find_decision_field(step: Step, decision: str) -> str:
    """Return the field of the answer that takes this decision; empty if none says so."""
    for name in ("decision", *step.shape.required):
        field = step.shape.fields.get(name)
        if field is not None and field.choices and decision in field.choices:
            return name
    return ""


def _set_field(data: dict[str, Any], name: str, value: Any, step: Step) -> None:
    """Set a field of an answer; `a.b=c` sets a field of a field, where the step has one of that
    name."""
    outer, dot, inner = name.partition(".")
    if dot and outer in step.shape.fields and name not in step.shape.fields:
        data.setdefault(outer, {})[inner] = value
    else:
        data[name] = value


def _check_version(question: "Question", given: AnswerRequest) -> None:
    """Raise StateError if the answerer saw another version of the question."""
    if given.version and given.version != question.version:
        raise StateError(
            f"question {question.question_id} is not the one you saw: it was asked anew or "
            "changed; read it again. Nothing was saved"
        )


def check_may_answer(settings: Settings, step: str, by: str, user: str) -> None:
    """Raise StateError if the project does not let this user answer at that step."""
    problem = settings.inbox.find_problem(step, by or user, user)
    if problem:
        raise StateError(f"{problem}; nothing was saved")


def _refuse_others(question: OpenGate, agents: Mapping[str, str]) -> None:
    """Raise StateError if the question goes to an agent, or into a file."""
    asked = agents.get(HUMAN, "")
    if asked == "manual":
        save = f"'interlock save {question.case_id} --run {question.run_id} -f FILE'"
        raise StateError(f"question {question.question_id} is answered by hand: {save}")
    if asked:
        raise StateError(f"question {question.question_id} goes to {asked}, not to the inbox")


def record_refusal(
    path: DatabaseAddress,
    late: LateAnswer,
    given: AnswerRequest,
    at: float,
    dispatch_id: int | None = None,
) -> None:
    """Journal an answer that did not count, at once or through the process that works on the
    run."""
    number = given.question_id if dispatch_id is None else dispatch_id
    sentence = f"{late.sentence[:1].upper()}{late.sentence[1:]}."
    # The time makes the record differ from an equal answer that was refused before.
    data = {**late.data, "at": at}
    mail = open_answers(path)
    write_refused_answer(mail, HumanAnswer(number, given.giver, data, late.run_id, sentence))
    # Whoever holds the lock journals what is there when it is released, too: the run takes mail
    # while it works, and another who answers looks again.
    while waiting := list_refused(mail, late.run_id):
        try:
            with open_writer(path) as connection, own_run(connection, late.run_id) as owned:
                refusals = [_build_refusal(connection, each) for each in waiting.values()]
                journal = Journal(connection, late.run_id, ownership=owned)
                journal.commit(TurnWrites(at, refusals=refusals))
        except StoreError:
            return
        for name in waiting:
            mail.remove(name)


def _build_refusal(connection: Connection, late: HumanAnswer) -> Refusal:
    found = find_question(connection, late.question_id)
    case_no = found.case_no if found else None
    return Refusal(case_no, late.question_id, "Stale", late.refused, encode_refused(late))


def _find_deadline(step: Step | None, asked_at: float) -> float:
    """Return the time until which a gate takes an answer; 0 if it waits for ever."""
    return asked_at + step.timeout if step is not None and step.timeout is not None else 0.0


GATE: Final = "gate"


class Question(msgspec.Struct, frozen=True):
    """A question that waits for a person. `case_id` is empty if it is about the run itself."""

    question_id: int | str
    kind: str
    """`gate`, `query`, `permission`, or the kind of a question about a run, such as `budget`."""
    run_id: int
    case_id: str
    step: str
    asked_at: float
    prompt: str
    options: tuple[str, ...] = ()
    """The decisions that it takes, if they are known."""
    answer_saved: bool = False
    """True if an answer is saved that no run has taken yet."""
    due_at: float = 0.0
    """The time until which it takes an answer; 0 if it waits for ever."""

    @property
    def version(self) -> str:
        """Return a hash of the question, so that nobody answers what they did not see."""
        asked = msgspec.structs.replace(self, answer_saved=False)
        return blake2b(msgspec.json.encode(asked), digest_size=8).hexdigest()

    @property
    def parts(self) -> list[PromptPart]:
        """Return the prompt for people: without the lines that enclose data for agents or, where a
        gate has no template, the case and its earlier answers."""
        given = read_json(self.prompt.encode())
        if not isinstance(given, dict) or not isinstance(given.get("answers"), dict):
            return split_prompt(self.prompt)
        known = {"the case": given.get("case"), "what else is known": given.get("context")}
        known |= {f"what {step} answered": said for step, said in given["answers"].items()}
        return [PromptPart(_format_value(said), title) for title, said in known.items() if said]

    @property
    def is_query(self) -> bool:
        """Return whether an agent asks it in the middle of its work."""
        return isinstance(self.question_id, str)

    @property
    def summary(self) -> str:
        """Return the question itself, in one line."""
        if isinstance(read_json(self.prompt.encode()), dict):  # a gate without a template
            return f"{', '.join(self.options) or 'decide'}?"
        lines = [" ".join(line.split()) for line in self.prompt.splitlines() if line.strip()]
        asking = [line for line in lines if line.endswith("?") and not _is_fence(line)]
        fences = [number for number, line in enumerate(lines) if line.startswith("--- data ")]
        enclosed = lines[fences[0] + 1 :] if fences else []
        plain = [line for line in lines if not line.startswith("#") and not _is_fence(line)]
        found = [*asking[:1], *enclosed[:1], *plain[:1], *lines[:1], ""]
        return found[0].lstrip("# ")


def _format_value(value: Any) -> str:
    """Return a text as it is, and everything else as JSON."""
    if isinstance(value, dict) and len(value) == 1 and isinstance(value.get("text"), str):
        return str(value["text"])
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def _is_fence(line: str) -> bool:
    """Return whether a line of a prompt encloses data or explains such lines."""
    return "--- data " in line or line.startswith("--- end ")


def list_questions(connection: Connection, path: DatabaseAddress) -> list[Question]:
    """Return the open questions of all runs, oldest first."""
    found = [
        *_list_gates(connection),
        *map(_describe_inquiry, list_open_inquiries(connection)),
        *_list_queries(connection, path),
    ]
    answered = list_answered(open_answers(path))
    saved = [
        msgspec.structs.replace(each, answer_saved=each.question_id in answered) for each in found
    ]
    return sorted(saved, key=lambda each: (each.asked_at, str(each.question_id).zfill(20)))


def _list_gates(connection: Connection) -> list[Question]:
    found = list_open_questions(connection)
    circuits = {
        run_id: _load_circuit(connection, run_id) for run_id in {each.run_id for each in found}
    }
    return [_describe_gate(each, _find_step(circuits[each.run_id], each.step)) for each in found]


def _describe_gate(gate: OpenGate, step: Step | None) -> Question:
    return Question(
        question_id=gate.question_id,
        kind=GATE,
        run_id=gate.run_id,
        case_id=gate.case_id,
        step=gate.step,
        asked_at=gate.asked_at,
        prompt=gate.prompt,
        options=_list_choices(step),
        due_at=_find_deadline(step, gate.asked_at),
    )


def _load_circuit(connection: Connection, run_id: int) -> Circuit | None:
    """Return the circuit of a run, or None if it cannot be read any more; its questions are shown
    all the same."""
    try:
        return load_circuit(find_run(connection, run_id, brief=True))
    except InterlockError:
        return None


def _find_step(circuit: Circuit | None, name: str) -> Step | None:
    return circuit.steps.get(name) if circuit else None


def _list_choices(step: Step | None) -> tuple[str, ...]:
    """Return the words that a gate takes, as far as its table names them."""
    if step is None:
        return ()
    fields = [step.shape.fields.get(each) for each in ("decision", *step.shape.required)]
    words = next((each.choices for each in fields if each and each.choices), ())
    return (*map(str, words), *(each for each in step.signals if each != ARTIFACT))


def _describe_inquiry(inquiry: OpenInquiry) -> Question:
    return Question(
        question_id=inquiry.question_id,
        kind=inquiry.kind,
        run_id=inquiry.run_id,
        case_id="",
        step=inquiry.kind,
        asked_at=inquiry.asked_at,
        prompt=inquiry.about,
        options=(RAISE, STOP),
    )


def _list_queries(connection: Connection, path: DatabaseAddress) -> list[Question]:
    return [
        Question(
            question_id=each.query_id,
            kind=each.kind,
            run_id=each.run_id,
            case_id=each.case_id,
            step=each.step,
            asked_at=each.asked_at,
            prompt=each.question,
            options=each.options,
        )
        for each in list_open_queries(open_queries(path), list_open_dispatch_ids(connection))
    ]


def read_inbox(path: DatabaseAddress) -> tuple[list[Question], list[QuestionGroup]]:
    """Return the open questions, and the groups of them that one answer settles together."""
    groups: list[QuestionGroup] = []
    with open_reader(path) as connection:
        questions = list_questions(connection, path)
        for run_id in sorted({each.run_id for each in questions}):
            application = find_application(find_run(connection, run_id).circuit)
            groups += application.group_questions(connection, run_id)
    return questions, groups
