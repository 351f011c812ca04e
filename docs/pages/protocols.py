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

A signal is a claim. It is accepted only from the agent's own words, in the exact grammar, from a role that may say
it, for the dispatch that is open. Everything else is refused with a sentence that says what to write instead.

## Beside the pages

- [plan.md](plan.md): the form of a plan. [comments.md](comments.md): when a human comment is an answer.
- [checkpoint.md](checkpoint.md): the checkpoint of an epic, the file that `CHECKPOINT` signals speak of.
- [schemas/](schemas/): a JSON Schema for each file, each accepted text signal (`text/`) and each line signal
  (`lines/`), in the form of `interlock lint --json`.
- [corpus.jsonl](corpus.jsonl): a conformance corpus of transcripts. A record has `text`, or `stream` with its
  `format`; `role`, `task_id`, `nonce`, `strict` and `ended_by_itself` say what was asked and how it ended. `expect`
  is the accepted signal or the reason of the refusal; a list of them for line signals. Records without a `role` are
  sessions.
- `interlock lint --jsonl corpus.jsonl --json` reads the corpus with this implementation. Compare yours.
- [Teach an agent](../howto/teach-an-agent.md): skills, and checks of prompts and transcripts.
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
