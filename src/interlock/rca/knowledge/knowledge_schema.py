"""The tables of knowledge: symptoms, root causes and what links them. They know no suite.

A symptom is a story that failures tell again and again; a root cause explains some of them. What
must always hold is a constraint here, so that no writer can forget it.
"""

from sqlalchemy import (
    CheckConstraint,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    Table,
    Text,
    UniqueConstraint,
    text,
)

from interlock.journal.schema import metadata

CATEGORIES = ("product", "automation", "infra", "flake", "firmware", "unknown")
"""Where a cause lives. The words of triages and of root causes."""

symptoms = Table(
    "symptoms",
    metadata,
    Column("symptom_id", Integer, primary_key=True),
    Column("fingerprint", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("error_pattern", Text, nullable=False),
    Column("test_name_pattern", Text, nullable=False),
    Column("features", Text, nullable=False),
    Column("component", Text, nullable=False),
    Column("severity", Text, nullable=False),
    Column("first_seen_at", Float, nullable=False),
    Column("last_seen_at", Float, nullable=False),
    Column("occurrence_count", Integer, nullable=False),
    Column("status", Text, nullable=False),
    UniqueConstraint("fingerprint", name="one_symptom_per_fingerprint"),
    CheckConstraint("fingerprint != ''", name="symptom_fingerprint"),
    CheckConstraint("status in ('active', 'dormant', 'resolved')", name="symptom_status"),
    CheckConstraint("occurrence_count >= 1", name="symptom_count"),
    CheckConstraint("first_seen_at <= last_seen_at", name="symptom_times"),
)

symptom_bands = Table(
    "symptom_bands",
    metadata,
    Column("band", Integer, primary_key=True, autoincrement=False),
    Column("symptom_id", ForeignKey("symptoms.symptom_id"), primary_key=True),
    sqlite_with_rowid=False,
)

sightings = Table(
    "sightings",
    metadata,
    Column("symptom_id", ForeignKey("symptoms.symptom_id"), primary_key=True),
    Column("case_no", ForeignKey("cases.case_no"), primary_key=True),
    Column("at", Float, nullable=False),
    sqlite_with_rowid=False,
)

rcas = Table(
    "rcas",
    metadata,
    Column("rca_id", Integer, primary_key=True),
    Column("case_no", ForeignKey("cases.case_no"), nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("title", Text, nullable=False),
    Column("description", Text, nullable=False),
    Column("defect_type", Text, nullable=False),
    Column("category", Text, nullable=False),
    Column("component", Text, nullable=False),
    Column("affected_versions", Text, nullable=False),
    Column("evidence", Text, nullable=False),
    Column("convergence_score", Float),
    Column("jira_ticket_id", Text, nullable=False),
    Column("jira_link", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("created_at", Float, nullable=False),
    Column("resolved_at", Float),
    Column("verified_at", Float),
    Column("archived_at", Float),
    UniqueConstraint("case_no", "attempt", name="one_rca_per_attempt"),
    CheckConstraint("attempt >= 0", name="rca_attempt"),
    CheckConstraint(f"category in {CATEGORIES}", name="rca_category"),
    CheckConstraint("convergence_score between 0 and 1", name="rca_score"),
    CheckConstraint("status in ('open', 'resolved', 'verified', 'archived')", name="rca_status"),
    CheckConstraint("(status = 'archived') = (archived_at is not null)", name="rca_archived"),
    CheckConstraint(
        "status = 'archived' or (resolved_at is not null) = (status in ('resolved', 'verified'))",
        name="rca_resolved",
    ),
    CheckConstraint(
        "status = 'archived' or (verified_at is not null) = (status = 'verified')",
        name="rca_verified",
    ),
    CheckConstraint(
        "created_at <= resolved_at and resolved_at <= verified_at and created_at <= archived_at"
        " and resolved_at <= archived_at and verified_at <= archived_at",
        name="rca_times",
    ),
    Index("one_open_rca_per_case", "case_no", unique=True, sqlite_where=text("status = 'open'")),
)

symptom_rca = Table(
    "symptom_rca",
    metadata,
    Column("symptom_id", ForeignKey("symptoms.symptom_id"), primary_key=True),
    Column("rca_id", ForeignKey("rcas.rca_id"), primary_key=True),
    Column("case_no", ForeignKey("cases.case_no"), nullable=False),
    Column("confidence", Float),
    Column("notes", Text, nullable=False),
    Column("linked_at", Float, nullable=False),
    CheckConstraint("confidence between 0 and 1", name="link_confidence"),
    Index("symptoms_of_rca", "rca_id"),
)
