"""What `interlock top` draws: tables that are read anew each second, and answers by two keys."""

from collections.abc import Sequence
from typing import ClassVar

from rich.text import Text
from textual import work
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.coordinate import Coordinate
from textual.widgets import DataTable, Footer, Label, Static

from interlock.api.inbox import Question, find_user
from interlock.api.project import Project
from interlock.cli.top import (
    AGENT_HEAD,
    INBOX_HEAD,
    RUN_HEAD,
    STEP_HEAD,
    TopSnapshot,
    format_head,
    list_agent_cells,
    list_inbox_cells,
    list_run_cells,
    list_step_cells,
    read_snapshot,
)
from interlock.system.errors import InterlockError
from interlock.system.text import clean_text

_EVERY = 1.0
"""Seconds between two looks."""
_LONGEST = 60
Cells = Sequence[tuple[str, ...]]


class TopApp(App[None]):
    """The screen."""

    TITLE = "interlock top"
    CSS = """
    #head { padding: 0 1; text-style: bold; }
    #note { padding: 0 1; height: auto; color: $warning; }
    Label { padding: 0 1; color: $text-muted; }
    DataTable { height: auto; max-height: 12; }
    #inbox { max-height: 16; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "Quit"),
        Binding("j", "move(1)", "Down", show=False),
        Binding("k", "move(-1)", "Up", show=False),
        Binding("a", "choose('approve')", "Approve"),
        Binding("r", "choose('reject')", "Reject"),
        Binding("y", "confirm", "Yes, answer", show=False),
        Binding("escape", "cancel", "Cancel", show=False),
    ]

    def __init__(self, project: Project) -> None:
        super().__init__()
        self._project = project
        self._found = TopSnapshot(at=0.0)
        self._chosen: tuple[Question, str] | None = None

    def compose(self) -> ComposeResult:
        yield Static("reading…", id="head")
        yield Static("", id="note", markup=False)
        for name, title in (
            ("inbox", "Inbox"),
            ("runs", "Runs"),
            ("steps", "Open cases by step"),
            ("agents", "Agents at work"),
        ):
            yield Label(title)
            yield DataTable(id=name, cursor_type="row", zebra_stripes=True)
        yield Footer()

    def on_mount(self) -> None:
        heads = {"inbox": INBOX_HEAD, "runs": RUN_HEAD, "steps": STEP_HEAD, "agents": AGENT_HEAD}
        for name, head in heads.items():
            self._find_table(name).add_columns(*head)
        self._find_table("inbox").focus()
        self.read()
        self.set_interval(_EVERY, self.read)

    @work(thread=True, exclusive=True)
    def read(self) -> None:
        """In a thread: the screen never waits for the database."""
        try:
            found = read_snapshot(self._project)
        except InterlockError as error:
            self.call_from_thread(self._say, str(error))
        else:
            self.call_from_thread(self._show, found)

    def action_move(self, by: int) -> None:
        table = self.focused
        if isinstance(table, DataTable):
            table.move_cursor(row=table.cursor_row + by)

    def action_choose(self, word: str) -> None:
        """The first of two keys: what would be answered is said, and nothing is done."""
        entry = self._find_entry()
        if entry is None:
            self._say("no question is under the cursor")
            return
        options = entry.options
        fallback = options[0 if word == "approve" else -1] if options else word
        self._chosen = (entry, word if word in options else fallback)
        question, decision = self._chosen
        self._say(
            f"answer question {question.question_id} ({question.case_id or question.step}) with "
            f"{decision!r}? y answers, escape does not"
        )

    def action_confirm(self) -> None:
        """The second key."""
        if self._chosen is None:
            return
        (question, decision), self._chosen = self._chosen, None
        now = self._find_entry()
        if now is None or now.version != question.version:
            self._say("the question is not as you saw it; look at it again, nothing was answered")
            return
        self._answer(question, decision)

    def action_cancel(self) -> None:
        self._chosen = None
        self._say("")

    @work(thread=True)
    def _answer(self, question: Question, decision: str) -> None:
        try:
            saved = self._project.answer(question.question_id, decision, by=find_user())
            said = f"answered question {saved.question_id} with {decision}; {saved.then}"
        except InterlockError as error:
            said = str(error)
        self.call_from_thread(self._say, said)
        self.call_from_thread(self.read)

    def _find_entry(self) -> Question | None:
        """The question under the cursor of the inbox."""
        row = self._find_table("inbox").cursor_row
        entries = self._found.inbox
        return entries[row].question if 0 <= row < len(entries) else None

    def _show(self, found: TopSnapshot) -> None:
        self._found = found
        self.query_one("#head", Static).update(Text(format_head(found)))
        self._fill("inbox", list_inbox_cells(found))
        self._fill("runs", list_run_cells(found))
        self._fill("steps", list_step_cells(found))
        self._fill("agents", list_agent_cells(found))

    def _fill(self, name: str, rows: Cells) -> None:
        """The rows anew, the cursor where it was: on the same row, if that is still there."""
        table = self._find_table(name)
        before = table.cursor_row
        held = (
            [str(table.get_cell_at(Coordinate(before, 0)))] if 0 <= before < table.row_count else []
        )
        table.clear()
        for row in rows:
            table.add_row(*(Text(clean_text(cell)[:_LONGEST]) for cell in row))
        places = [place for place, row in enumerate(rows) if row[0] in held]
        if places or rows:
            table.move_cursor(row=places[0] if places else min(before, len(rows) - 1))

    def _say(self, text: str) -> None:
        self.query_one("#note", Static).update(Text(clean_text(text)))

    def _find_table(self, name: str) -> "DataTable[Text]":
        return self.query_one(f"#{name}", DataTable)
