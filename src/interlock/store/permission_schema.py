"""The table of permissions: what an agent at work asked leave for, and who said what.

A permission belongs to the life of a dispatch: it has the dispatch's number and one of its own,
which is never given twice. Undecided is not allowed.
"""

from sqlalchemy import CheckConstraint, Column, Float, ForeignKey, Integer, Table, Text

from interlock.store.schema import metadata

permissions = Table(
    "permissions",
    metadata,
    Column("dispatch_id", ForeignKey("dispatches.dispatch_id"), primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("asked_at", Float, nullable=False),
    Column("until", Float, nullable=False),
    Column("kind", Text, nullable=False),
    Column("title", Text, nullable=False),
    Column("detail", Text, nullable=False),
    Column("decision", Text),
    Column("decided_by", Text),
    Column("decided_at", Float),
    CheckConstraint("decision in ('allow', 'reject')", name="permission_decision"),
    CheckConstraint(
        "(decision is null) = (decided_by is null) and (decision is null) = (decided_at is null)",
        name="permission_decided",
    ),
)
