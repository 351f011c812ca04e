"""The reference pages under docs/protocols, made from the catalogue.

Knows which pages there are. Refuses to know how to write them to disk.
"""

# ruff: noqa: E501 -- rows of a Markdown table cannot be wrapped

from interlock.wire.file_page import file_page
from interlock.wire.line_page import line_page
from interlock.wire.text_page import text_page

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

These pages are made from the signal catalogue; a test keeps them equal to it.
"""


def render_pages() -> dict[str, str]:
    """Every page by its file name under docs/protocols."""
    return {
        "README.md": _INDEX,
        "text-signals.md": text_page(),
        "line-signals.md": line_page(),
        "files.md": file_page(),
    }
