"""The kernel's tables. Journal, dispatches and blobs are only ever added to; cases are their fold.

A dispatch is open while its case points at it, so settling one changes no old row. Prompts and
answers are blobs: the rows that mention them stay small, and equal texts are kept once.
Applications declare their own tables.
"""

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Float,
    ForeignKey,
    Integer,
    LargeBinary,
    MetaData,
    Sequence,
    Table,
    Text,
    UniqueConstraint,
)

metadata = MetaData()

Number = BigInteger().with_variant(Integer(), "sqlite")
"""A whole number of 64 bits, in either database."""
for _kind in ("blob", "run", "case", "dispatch"):
    # Where several processes write, each takes its numbers from here; a SQLite file has none.
    Sequence(f"{_kind}_numbers", metadata=metadata)

blobs = Table(
    "blobs",
    metadata,
    Column("blob_id", Number, primary_key=True, autoincrement=False),
    Column("hash", LargeBinary, nullable=False),
    Column("packed", Number, nullable=False),
    Column("data", LargeBinary, nullable=False),
)

runs = Table(
    "runs",
    metadata,
    Column("run_id", Number, primary_key=True, autoincrement=False),
    Column("circuit", Text, nullable=False),
    Column("version", Number, nullable=False),
    Column("text", ForeignKey("blobs.blob_id"), nullable=False),
    Column("source", Text, nullable=False),
    Column("fingerprint", Text, nullable=False),
    Column("options", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("seconds", Float, nullable=False),
    Column("created_at", Float, nullable=False),
    Column("changed_at", Float, nullable=False),
    CheckConstraint(
        "status in ('running', 'stopped', 'waiting', 'rate-limited', 'budget', 'done',"
        " 'unhealthy')",
        name="run_status",
    ),
)

cases = Table(
    "cases",
    metadata,
    Column("case_no", Number, primary_key=True, autoincrement=False),
    Column("run_id", ForeignKey("runs.run_id"), nullable=False),
    Column("case_id", Text, nullable=False),
    Column("input", ForeignKey("blobs.blob_id"), nullable=False),
    Column("priority", Number, nullable=False),
    Column("needs", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("step", Text, nullable=False),
    Column("dispatch_id", Number),
    Column("state", Text, nullable=False),
    UniqueConstraint("run_id", "case_id"),
    CheckConstraint("status in ('open', 'ended', 'stuck')", name="case_status"),
)

dispatches = Table(
    "dispatches",
    metadata,
    Column("dispatch_id", Number, primary_key=True, autoincrement=False),
    Column("case_no", ForeignKey("cases.case_no"), nullable=False),
    Column("step", Text, nullable=False),
    Column("attempt", Number, nullable=False),
    Column("role", Text, nullable=False),
    Column("prompt", ForeignKey("blobs.blob_id"), nullable=False),
    Column("at", Float, nullable=False),
)

journal = Table(
    "journal",
    metadata,
    Column("seq", Number, primary_key=True),
    Column("case_no", ForeignKey("cases.case_no"), nullable=False),
    Column("dispatch_id", ForeignKey("dispatches.dispatch_id"), nullable=False),
    Column("at", Float, nullable=False),
    Column("answer", ForeignKey("blobs.blob_id"), nullable=False),
    Column("tokens", Number, nullable=False),
    Column("money", Float, nullable=False),
    Column("decision", Text, nullable=False),
    Column("epoch", Number, nullable=False, server_default="0"),
    UniqueConstraint("case_no", "dispatch_id", name="one_answer_per_dispatch"),
)

refusals = Table(
    "refusals",
    metadata,
    Column("refusal_id", Number, primary_key=True),
    Column("run_id", ForeignKey("runs.run_id"), nullable=False),
    Column("case_no", Number),
    Column("dispatch_id", Number),
    Column("at", Float, nullable=False),
    Column("reason", Text, nullable=False),
    Column("sentence", Text, nullable=False),
    Column("content", ForeignKey("blobs.blob_id"), nullable=False),
    Column("content_hash", LargeBinary, nullable=False),
    UniqueConstraint("run_id", "dispatch_id", "reason", "content_hash"),
)

questions = Table(
    "questions",
    metadata,
    Column("question_id", ForeignKey("dispatches.dispatch_id"), primary_key=True),
    Column("case_no", ForeignKey("cases.case_no"), nullable=False),
    Column("answered_at", Float),
    Column("answered_by", Text),
)

inquiries = Table(
    "inquiries",
    metadata,
    Column("question_id", Number, primary_key=True, autoincrement=False),
    Column("run_id", ForeignKey("runs.run_id"), nullable=False),
    Column("kind", Text, nullable=False),
    Column("about", Text, nullable=False),
    Column("asked_at", Float, nullable=False),
    Column("answered_at", Float),
    Column("answered_by", Text),
    Column("answer", Text),
)
"""Questions that Interlock itself has for a human, about a run and not at a gate of a case. Their
numbers are of the same row as those of dispatches."""

pauses = Table(
    "pauses",
    metadata,
    Column("pause_id", Number, primary_key=True),
    Column("run_id", ForeignKey("runs.run_id"), nullable=False),
    Column("dispatch_id", ForeignKey("dispatches.dispatch_id"), nullable=False),
    Column("account", Text, nullable=False),
    Column("at", Float, nullable=False),
    Column("until", Float, nullable=False),
    Column("guesses", Number, nullable=False),
    Column("tokens", Number, nullable=False),
    Column("money", Float, nullable=False),
    Column("reason", Text, nullable=False),
)
"""Each time a dispatch met a rate limit; it stays open and is sent again when the limit is over."""

calls = Table(
    "calls",
    metadata,
    Column("call_id", Number, primary_key=True),
    Column("run_id", ForeignKey("runs.run_id"), nullable=False),
    Column("dispatch_id", ForeignKey("dispatches.dispatch_id"), nullable=False),
    Column("at", Float, nullable=False),
    Column("model", Text, nullable=False),
    Column("request_id", Text, nullable=False),
    Column("input", Number, nullable=False),
    Column("cached", Number, nullable=False),
    Column("cache_write", Number, nullable=False),
    Column("output", Number, nullable=False),
    Column("money", Float, nullable=False),
    Column("is_estimate", Number, nullable=False),
)
"""Each request to a model's endpoint that was answered, with or without a usable answer."""

worked = Table(
    "worked",
    metadata,
    Column("day", Text, primary_key=True),
    Column("run_id", ForeignKey("runs.run_id"), primary_key=True),
    Column("role", Text, primary_key=True),
    Column("seconds", Float, nullable=False),
    sqlite_with_rowid=False,
)
"""For how long a run was worked on on a day, and for how long agents of a role were out; under ''
the run's own time."""

owners = Table(
    "owners",
    metadata,
    Column("run_id", ForeignKey("runs.run_id"), primary_key=True),
    Column("epoch", Number, nullable=False),
    Column("owner", Text),
    Column("name", Text, nullable=False),
    Column("host", Text, nullable=False),
    Column("pid", Number, nullable=False),
    Column("command", Text, nullable=False),
    Column("since", Float, nullable=False),
    Column("lease_until", Float, nullable=False),
)
"""Who works on a run, or did last. Each time a run is taken its epoch rises; what is written under
an older one is refused. Times are the database's own. `owner` is null once a run is given back."""

mail = Table(
    "mail",
    metadata,
    Column("box", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    Column("body", LargeBinary, nullable=False),
    Column("run_id", Number),
    Column("written_by", Text, nullable=False, server_default=""),
    Column("at", Float, nullable=False),
)
"""What people leave for a run, where that is no folder: answers, and replies to agents."""

tokens = Table(
    "tokens",
    metadata,
    Column("token_id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("salt", LargeBinary, nullable=False),
    Column("hash", LargeBinary, nullable=False),
    Column("scopes", Text, nullable=False),
    Column("created_at", Float, nullable=False),
    Column("created_by", Text, nullable=False),
    Column("expires_at", Float),
    Column("used_at", Float),
    Column("revoked_at", Float),
)
"""Who may come in over HTTP. Of a secret only a salted hash is kept."""
