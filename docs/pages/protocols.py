"""All generated files under docs/protocols: the index, the three pages and the schemas."""

# ruff: noqa: E501 -- rows of a Markdown table cannot be wrapped

import json

from docs.pages.files import render_file_page
from docs.pages.line_signals import render_line_page
from docs.pages.schemas import build_schemas, name_schema_file
from docs.pages.text_signals import render_text_page

_INDEX = """\
# The signal protocols

Agents answer Interlock over four protocols. Each can be implemented from its page alone.

| protocol | page | an answer is |
|---|---|---|
| files | [files.md](files.md) | a JSON artifact written next to `signal.json`, one case at a time |
| batches | [files.md](files.md#batches) | the same, for many cases listed in one manifest |
| text signals | [text-signals.md](text-signals.md) | a line such as `READY_FOR_REVIEW: task-1` in the last message |
| line signals | [line-signals.md](line-signals.md) | a line such as `SAGE_SIGNAL:STORY_STARTED:3-1` on stdout |

A signal is a claim. It is accepted only from the agent's own words, in the exact grammar, from a
role that may say it, for the dispatch that is open. Everything else is refused with a sentence
that says what to write instead.

## Beside the pages

- [plan.md](plan.md) is the form of a plan, and [comments.md](comments.md) how human comments are taken for answers.
- [checkpoint.md](checkpoint.md) is about the file that `CHECKPOINT` signals speak of: the checkpoint of an epic.
- [schemas/](schemas/) holds a JSON Schema for each file, for each accepted text signal (`text/`) and for
  each line signal (`lines/`), in the form in which `interlock lint --json` gives them.
- [corpus.jsonl](corpus.jsonl) is a conformance corpus: transcripts, the rule each is about, and what a
  reader must make of it. A record has `text`, or `stream` with its `format`; `role`, `task_id`,
  `nonce`, `strict` and `ended_by_itself` say what was asked and how it ended. `expect` is the accepted
  signal or the reason of the refusal; a list of them for line signals. Records with no `role` are
  sessions.
- `interlock lint --jsonl corpus.jsonl --json` reads it with this implementation. Compare yours.
- `interlock lint FILE` finds examples in your prompts that would be taken for real signals.
- `interlock init` writes skills that teach an agent all of this: see
  [how to teach an agent](../howto/teach-an-agent.md).

The protocol pages are made from the signal catalogue; a test keeps them equal to it.
"""


def render_schemas() -> dict[str, str]:
    """Every schema by its file name under docs/protocols/schemas."""
    return {
        name_schema_file(name): json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
        for name, schema in build_schemas().items()
    }


def render_pages() -> dict[str, str]:
    """Every page by its file name under docs/protocols."""
    return {
        "README.md": _INDEX,
        "text-signals.md": render_text_page(),
        "line-signals.md": render_line_page(),
        "files.md": render_file_page(),
    }
