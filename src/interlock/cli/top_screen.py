"""What `interlock top` draws: tables that are read anew each second, and answers by two keys."""

from collections.abc import Sequence
from typing import ClassVar

from rich.text import Text
from textual import work
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.coordinate import Coordinate
from textual.screen import ModalScreen
from textual.widgets import DataTable, Footer, Label, Static

from interlock.api.inbox import Question, find_user
from interlock.api.project import Project
from interlock.api.waiting import InboxEntry, assign_keys
from interlock.cli.top import (
    AGENT_HEAD,
    INBOX_HEAD,
    RUN_HEAD,
    STEP_HEAD,
    TopSnapshot,
    format_head,
    list_agent_cells,
    list_inbox_cells,
    list_question_lines,
    list_run_cells,
    list_step_cells,
    read_snapshot,
)
from interlock.system.errors import InterlockError
from interlock.system.text import clean_text, plural

_EVERY = 1.0
"""Seconds between two looks."""
_LONGEST = 60
Cells = Sequence[tuple[str, ...]]


class QuestionScreen(ModalScreen[None]):
    """One question whole: what is asked, and the keys of its answers."""

    CSS = """
    QuestionScreen { align: center middle; }
    #question {
        width: 90%; height: 90%; padding: 1 2; background: $surface; border: round $primary;
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,enter", "dismiss", "Back"),
        Binding("j", "scroll(1)", show=False),
        Binding("k", "scroll(-1)", show=False),
    ]

    def __init__(self, entry: InboxEntry) -> None:
        super().__init__()
        self._entry = entry

    def compose(self) -> ComposeResult:
        with VerticalScroll(id="question"):
            yield Static(
                Text("\n".join(clean_text(line) for line in list_question_lines(self._entry)))
            )
        yield Footer()

    def action_scroll(self, by: int) -> None:
        self.query_one(VerticalScroll).scroll_relative(y=by)


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
        Binding("a", "choose('a')", "Approve"),
        Binding("r", "choose('r')", "Reject"),
        *(Binding(str(key), f"choose('{key}')", show=False) for key in range(1, 10)),
        Binding("y", "confirm", "Yes, answer", show=False),
        Binding("escape", "cancel", "Cancel", show=False),
        Binding("tab", "app.focus_next", "Next table"),
    ]

    def __init__(self, project: Project) -> None:
        super().__init__()
        self._project = project
        self._found = TopSnapshot(at=0.0)
        self._chosen: tuple[InboxEntry, str] | None = None

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

    def action_choose(self, key: str) -> None:
        """The first of two keys: what would be answered is said, and nothing is done."""
        self._chosen = None
        entry = self._find_entry()
        if entry is None:
            self._say("no question is under the cursor")
            return
        question = entry.question
        keys = assign_keys(question.options)
        decision = next((word for word, its_key in keys.items() if its_key == key), None)
        if decision is None:
            known = ", ".join(f"{its_key} {word}" for word, its_key in keys.items())
            self._say(
                f"question {question.question_id} takes {known}"
                if keys
                else f"answer it with: interlock answer {question.question_id} DECISION"
            )
            return
        self._chosen = (entry, decision)
        about = question.case_id or question.step
        more = f" and {plural(entry.count - 1, 'other')} alike" if entry.count > 1 else ""
        self._say(
            f"answer question {question.question_id} ({about}{more}) with {decision!r}? "
            "y answers, escape does not"
        )

    def on_data_table_row_selected(self, event: "DataTable.RowSelected") -> None:
        """Enter shows a question whole."""
        entry = self._find_entry()
        if event.data_table.id == "inbox" and entry is not None:
            self.push_screen(QuestionScreen(entry))

    def action_confirm(self) -> None:
        """The second key."""
        if self._chosen is None:
            return
        (entry, decision), self._chosen = self._chosen, None
        now = self._find_entry()
        if now is None or (now.question.version, now.count) != (
            entry.question.version,
            entry.count,
        ):
            self._say("the question is not as you saw it; look at it again, nothing was answered")
            return
        self._answer(entry.question, decision)

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

    def _find_entry(self) -> InboxEntry | None:
        """What is under the cursor of the inbox."""
        row = self._find_table("inbox").cursor_row
        entries = self._found.inbox
        return entries[row] if 0 <= row < len(entries) else None

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
