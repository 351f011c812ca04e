"""The page on the file protocol: single signals, batches, briefing, budget.

Its examples are written by the encoders; its fields and statuses come from the catalogue.
"""

# ruff: noqa: E501 -- rows of a Markdown table cannot be wrapped

from typing import Final

from interlock.carriers.contract import MAX_ANSWER
from interlock.carriers.files.batch import MAX_MANIFEST
from interlock.carriers.files.case_folder import MAX_ARTIFACT, MAX_SIGNAL
from interlock.carriers.files.file import SECOND_LOOK_AFTER
from interlock.signals.batch import (
    Briefing,
    BriefingSymptom,
    build_budget,
    encode_budget,
    encode_manifest,
    render_briefing,
    render_worker_prompt,
)
from interlock.signals.catalogue import list_signals
from interlock.signals.signal_file import encode_artifact, encode_signal
from interlock.signals.skills import EXAMPLE_ARTIFACT, EXAMPLE_MANIFEST, EXAMPLE_SIGNAL
from interlock.system.strict_json import MAX_DEPTH

_BRIEFING: Final = Briefing(
    batch_id=2,
    scenario="ptp-mock",
    suite_id="1001",
    phase="triage",
    in_batch=4,
    total=30,
    completed=8,
    symptoms=(BriefingSymptom("C1", "product", "linuxptp-daemon", "clock sync failure", "high"),),
)
_MEANINGS: Final = {
    "dispatch_id": "rises with every dispatch, is never reused; echo it in the artifact",
    "case_id": "the case's own name",
    "step": "the step of the circuit, e.g. `F0_RECALL`",
    "prompt_path": "absolute path of the prompt to read",
    "artifact_path": "absolute path where the artifact is expected",
    "timestamp": "creation of the dispatch; it does not change with the status",
    "error": "empty unless the status is `error`",
    "batch_id": "rises within a run",
    "total": "how many signals the batch has",
    "briefing_path": "shared context, relative to the workspace root",
    "signals": "the entries, see below",
    "signal_path": "the case's `signal.json`, relative to the workspace root",
    "created_at": "when the batch was written",
    "updated_at": "when a status last changed",
}
_KINDS: Final = {"text": "string", "path": "string", "timestamp": "ISO 8601", "number": "int"}


def render_file_page() -> str:
    parts = [
        _INTRO,
        _fenced("json", encode_signal(EXAMPLE_SIGNAL)),
        _fields("signal"),
        "### Statuses",
        _statuses("signal"),
        _NEW_DISPATCH,
        _WRAPPER,
        _fenced("json", encode_artifact(EXAMPLE_ARTIFACT)),
        _PROBLEMS,
        _WATCHER,
        _BATCHES,
        _fenced("json", encode_manifest(EXAMPLE_MANIFEST)),
        _fields("batch"),
        _fields("entry"),
        "### Statuses of a batch",
        _statuses("batch"),
        "### Statuses of an entry",
        _statuses("entry"),
        _PARENT,
        _fenced("", _prompt().encode()),
        _BUDGET,
        _fenced("json", encode_budget(build_budget(100000, 45000))),
        _SPENT,
        _BRIEFINGS,
        _fenced("markdown", render_briefing(_BRIEFING).encode()),
    ]
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


def _fenced(language: str, text: bytes) -> str:
    return f"```{language}\n{text.decode().rstrip()}\n```"


def _fields(file: str) -> str:
    fields = next(row.payload for row in list_signals("file") if row.name.startswith(f"{file}:"))
    lines = ["| field | type | meaning |", "|---|---|---|"]
    for field in fields:
        meaning = " or ".join(f"`{c}`" for c in field.choices) or _MEANINGS[field.name]
        kind = "list" if field.name == "signals" else _KINDS.get(field.kind, field.kind)
        lines.append(f"| `{field.name}` | {'string' if field.choices else kind} | {meaning} |")
    return "\n".join(lines)


def _statuses(file: str) -> str:
    lines = ["| status | written by | may become | what it asks |", "|---|---|---|---|"]
    for row in list_signals("file"):
        owner, _, status = row.name.partition(":")
        if owner == file:
            then = ", ".join(f"`{one}`" for one in row.then)
            lines.append(f"| `{status}` | {', '.join(row.roles)} | {then} | {row.asks} |")
    return "\n".join(lines)


def _prompt() -> str:
    return render_worker_prompt(
        case_id="C1",
        step="F0_RECALL",
        briefing_path=EXAMPLE_MANIFEST.briefing_path,
        signal_path=EXAMPLE_MANIFEST.signals[0].signal_path,
        dispatch_id=7,
    )


_INTRO: Final = """\
# Files

The coordinator writes `signal.json` into the case's folder. The responder reads it, reads the prompt and writes an
artifact. The coordinator takes the artifact and continues. Files are replaced, never edited in place: write to a
temporary name in the same folder, then rename.

| file | in the folder | written by | schema |
|---|---|---|---|
| `signal.json` | of the case | coordinator; a responder only to report an error | [signal](schemas/signal.schema.json) |
| the artifact, any name | wherever `artifact_path` says | responder | [artifact](schemas/artifact.schema.json) |
| `batch-manifest.json` | of the suite | coordinator; a responder changes statuses | [batch-manifest](schemas/batch-manifest.schema.json) |
| `briefing.md` | of the suite | coordinator | |
| `budget-status.json` | of the suite | coordinator | [budget-status](schemas/budget-status.schema.json) |

A case's folder is `.asterisk/calibrate/{suite}/{case}/` or `.asterisk/investigations/{suite}/{case}/` for root-cause
analysis, `.interlock/runs/{suite}/{case}/` for other circuits; the suite's folder is the one above it. `{case}` is a
number; the case's own name is in the file. To find work, poll or watch `*/signal.json` under the suite's folder:
several cases may wait at once, and folders appear while you look.

All files but the briefing are UTF-8 JSON with an object at the top, private to the user (mode 0600). Keep fields you
do not know when you write a file back.

## `signal.json`
"""
_NEW_DISPATCH: Final = """\
A new dispatch starts with `waiting` and a higher `dispatch_id` after the one before it is settled; after `error` it
is a retry. Within one dispatch a status never goes back.
"""
_WRAPPER: Final = """\
## The artifact

Write the step's object wrapped with the `dispatch_id` of the signal you answer, as valid JSON without Markdown or
comments.
"""
_PROBLEMS: Final = f"""\
| what is found | what happens |
|---|---|
| no file | the coordinator waits, by default for 10 minutes, then sets `error` |
| empty, not UTF-8 or invalid JSON | read once more after {SECOND_LOOK_AFTER:g} second, then `error`: a file that is written in place must be whole by then |
| a key twice in one object, nested too deep, no object | `error` |
| no `dispatch_id`, or one that is no 64-bit integer (a string, a float, a boolean) | stale: ignored until the timeout, journaled as refused |
| another `dispatch_id` | stale: the same |
| `data` missing, null or no object | `error` |
| a field of the step missing or wrong | `error`; asked again as the circuit says, the prompt giving the reason |
| a symbolic link, a folder, a pipe or a file that cannot be read | refused and journaled; a regular file in its place is taken |
| too large | looked at once more after {SECOND_LOOK_AFTER:g} second, then `error` |

An artifact has at most {MAX_ARTIFACT:,} bytes, its `data` {MAX_ANSWER:,}, and {MAX_DEPTH} levels; `signal.json` as a
responder writes it {MAX_SIGNAL:,} bytes; `batch-manifest.json` {MAX_MANIFEST:,}. The second before another look
begins again when the file changes. `interlock conform` judges a watcher's artifacts by these same rules.
"""
_WATCHER: Final = """\
## A watcher, step by step

1. Find `signal.json` with the status `waiting`. Read its fields afresh for every step.
2. Read the prompt and do the work.
3. Write `{"dispatch_id": N, "data": {...}}` to `artifact_path`.
4. Wait for the next `waiting` signal with a higher `dispatch_id`, or the end of the run.

If the work cannot be done, write no artifact: replace `signal.json` by a copy of itself with `"status": "error"` and
the reason in `error`. The dispatch then fails at once. An error with another `dispatch_id` than the open one is
ignored.

| a watcher finds | it should |
|---|---|
| `processing`, `done` or `error` | leave it and look again |
| an artifact of an earlier dispatch at `artifact_path` | replace it; loops ask the same step more than once |
| the coordinator restarted | do nothing: an open dispatch keeps its `dispatch_id`, and an artifact written meanwhile is taken |
| it was restarted itself | start over with every `waiting` signal whose artifact does not carry its `dispatch_id` |
| `signal.json` is half written, vanishes or is no JSON | look again |
| its answer was refused | answer the next `waiting` signal, which has a higher `dispatch_id` and gives the reason in its prompt |
| other watchers on its folder | agree with them; the first artifact with the right id counts, others are refused |

The prompt says which form `data` has. `artifact_path` names the file; do not derive it from the step. The prompt's
file ends with that path and the wrapper to write, for an agent that is given nothing else.
"""
_BATCHES: Final = """\
## Batches

`batch-manifest.json` in the suite's folder lists signals that wait at the same time; all of them are written before
it. Without a manifest, or with one that is `done` or `error`, work through single signals as above. Paths in the
manifest are relative to the workspace root. Signals and artifacts of a batch are those of single signals.
"""
_PARENT: Final = """\
A batch is `done` once every signal is settled, even if some failed; it is `error` when all failed or the deadline
passed. Failed cases come again in a later batch, within their retry limit. Artifacts count whether or not a responder
sets `in_progress` and `claimed`.

### A parent agent, step by step

1. Read the manifest with the status `pending`, set it to `in_progress`.
2. Read the briefing.
3. For each `pending` entry, as many at a time as you can: set it to `claimed` and start a worker with the prompt
   below.
4. When a worker is done, check that its artifact is there and set the entry to `done`. If it failed, set the entry
   and the case's `signal.json` to `error`.
5. Repeat until no entry is `pending`. The coordinator closes the batch.

Any number of workers may take part. Both sides write the manifest: read it afresh, change only `status`, `updated_at`
and the entries' `status`, never step back, and rename it into place. A lost change does no harm, because artifacts
count without it. The manifest of a run that has died is archived under another name.
"""
_BUDGET: Final = """\
## Budget

`budget-status.json`, if it lies beside the manifest, counts tokens.
"""
_SPENT: Final = """\
Over 80 %, take one signal at a time. With nothing remaining, stop: the coordinator dispatches nothing more. A
`total_budget` of 0 means no limit.
"""
_BRIEFINGS: Final = """\
## Briefing

`briefing.md` is written before each batch and grows with the findings of earlier batches, up to a fixed size. In the
investigation phase it also lists the clusters. Text from logs is put in as plain words, without markup.
"""
