"""A failed test, as a source tells it: the subject of one case.

The form of `interlock analyst` and of a case's input. Unknown parts are empty. Texts are what the
source said, cut to a bound at the door and never cleaned: masking is for comparing, not keeping.
"""

import msgspec


class Ticket(msgspec.Struct, frozen=True):
    """An issue that somebody linked to a failure."""

    ticket_id: str
    url: str = ""


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """One test that failed in one launch."""

    id: str
    test_name: str = ""
    class_name: str = ""
    type: str = ""
    """The exception's or the assertion's type."""
    message: str = ""
    stack: str = ""
    log: str = ""
    log_truncated: bool = False
    launch: str = ""
    at: str = ""
    """When it began: RFC 3339."""
    ended_at: str = ""
    attributes: dict[str, str] = {}
    job: str = ""
    """The test suite or CI job it ran in."""
    path: str = ""
    """The names of what holds it, outermost first, as the source joins them."""
    file: str = ""
    line: int = 0
    item_id: int = 0
    """Its id in ReportPortal; 0 where there is none."""
    url: str = ""
    code_ref: str = ""
    issue_type: str = ""
    """A defect code that somebody, or something, gave it before."""
    issue_comment: str = ""
    auto_analyzed: bool = False
    tickets: tuple[Ticket, ...] = ()
