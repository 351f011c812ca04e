"""The words of the skill pack that no table can give.

Knows how to explain the protocols to an agent, briefly. Refuses to know any signal by heart: forms
and fields are put beside these words by skills, from the catalogue.
"""

# ruff: noqa: E501 -- rows of a Markdown table cannot be wrapped

from typing import Final

DESCRIPTION: Final = (
    "How to answer Interlock, the coordinator that dispatches work to you over signal files, batch "
    "manifests, text signals and SAGE_SIGNAL lines. Use when you find a signal.json or "
    "batch-manifest.json with work that waits, when a prompt asks you to end with a signal such as "
    "a review or audit verdict, or when you run inside a supervised session that reports progress."
)

OVERVIEW: Final = """\
# Answering Interlock

Interlock is a program. It reads exactly what is written down and nothing between the lines: a
signal in the wrong place or form is refused, with a sentence that says what to write.

| what you see | protocol | read |
|---|---|---|
| a `signal.json` with `"status": "waiting"` | files | [references/files.md](references/files.md) |
| a `batch-manifest.json` with `"status": "pending"` | batches | [references/files.md](references/files.md) |
| a prompt that names your role and a task | text signals | [references/text-signals.md](references/text-signals.md) |
| a session with epics, stories and checkpoints | line signals | [references/line-signals.md](references/line-signals.md) |

## Files in short

1. Read `dispatch_id`, `prompt_path` and `artifact_path` from `signal.json`, afresh for every step.
2. Read the prompt and do the work.
3. Write `{"dispatch_id": N, "data": {...}}` to `artifact_path`: valid JSON, no Markdown around it.
   Write to a temporary name in the same folder, then rename.
4. Cannot do it? Write no artifact. Set `"status": "error"` and the reason in `signal.json`.

## Text in short

- The signal is one line at column 0, in the exact upper-case form, at the end of your last message.
- Outside code fences, quotes, comments and tags. No bold, no bullet, no emoji before it.
- Under it only its own sections, filled in; explanations go before it.
- One signal, for the task you were given. Never mention a signal's name at the start of another line.

## Lines in short

Do not print signal lines from tools: what a tool prints never counts. Use the command, which checks
the signal and delivers it:

    interlock emit STORY_STARTED 3-1
    interlock emit CHECKPOINT:WRITE epic-3:3-1:phase-2:5

## Check yourself

`interlock lint FILE --role ROLE --task TASK` says what would be accepted of a message, and why not.
"""

WORKERS: Final = {
    "claude": "For a batch, start one sub-agent per signal with the Task tool, several in one message. Give each the worker's prompt from references/files.md. Sub-agents share nothing with you.\n",
    "cursor": "For a batch, start one Task sub-agent per signal, up to 4 at a time, one level deep. Give each the worker's prompt from references/files.md. Sub-agents share nothing with you.\n",
    "codex": "For a batch without sub-agents, work through the pending signals one by one, in the order of the manifest. With sub-agents, give each the worker's prompt from references/files.md.\n",
}

FILES_TEXT: Final = """\
# Files and batches

## One signal

`signal.json` lies in the case's folder and names one dispatch:

@SIGNAL@

1. Take it only while its `status` is `waiting`.
2. Read the file at `prompt_path`: it holds all you need and says which fields the answer has.
3. Write the answer to `artifact_path`, wrapped as below. `dispatch_id` is a JSON integer, copied
   from the signal you answer. Another number, a string, or none makes the answer stale: it is
   ignored until the time is up.
4. Wait until `signal.json` shows `waiting` with a higher `dispatch_id`, or the run is over. The
   coordinator sets `processing` and `done`; leave those to it.

The wrapped answer:

@ARTIFACT@

If you cannot answer: replace `signal.json` by a copy of itself with `"status": "error"` and the
reason in `"error"`, the same `dispatch_id`. The dispatch then fails at once instead of at its
deadline (10 minutes, if nothing else was set).

Always write to a temporary file in the same folder and rename it: half a file is no answer.

## A batch

`batch-manifest.json` in the suite's folder lists signals that wait at the same time. It counts while
its `status` is `pending` or `in_progress`. Without it, look for single signals.

@MANIFEST@

1. Read the manifest; set its `status` to `in_progress`.
2. Read the file at `briefing_path`: what earlier batches found.
3. If `budget-status.json` lies beside it: over 80 `percent_used`, take one signal at a time; with
   nothing `remaining`, stop.
4. For each entry with the status `pending`: set it to `claimed`, start a worker.
5. When a worker is done, look whether its artifact is there. Set the entry to `done`; if it failed,
   set the entry to `error` and the case's `signal.json` to `error` with the reason.
6. Repeat until nothing is `pending`. The coordinator closes the batch; do not set it to `done`.

Paths in the manifest are relative to the workspace root; those in `signal.json` are absolute.
Change only the fields named here, and keep everything else as it was.

## The worker's prompt

@WORKER@

N is the `dispatch_id` of the signal.
"""

MANAGED: Final = """\
## Interlock

This project is coordinated by Interlock, a program that reads signals to the letter. How to answer
it is told in {places}.

- `signal.json` waiting: read its prompt, write `{{"dispatch_id": N, "data": {{...}}}}` to its
  `artifact_path`, by way of a temporary file and a rename.
- Asked for a signal: one line at column 0 at the end of your last message, outside fences and
  quotes, for the task you were given, with its sections under it and nothing else.
- In a supervised session: report with `interlock emit TYPE PAYLOAD`.
- Not sure? `interlock lint FILE --role ROLE --task TASK`.

Made by `interlock init`; changes between the markers are overwritten.
"""
