"""Investigations and knowledge: suites, launches, RCA cases, symptoms, root causes."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    _symptoms()
    _versions()
    _symptom_bands()
    _suites()
    _circuits()
    _rcas()
    _sightings()
    _launches()
    _symptom_rca()
    _jobs()
    _rca_cases()
    _triages()


def _texts(*names: str) -> list[sa.Column[str]]:
    return [sa.Column(name, sa.Text(), nullable=False) for name in names]


def _symptoms() -> None:
    op.create_table(
        "symptoms",
        sa.Column("symptom_id", sa.Integer(), nullable=False),
        *_texts(
            "fingerprint",
            "name",
            "error_pattern",
            "test_name_pattern",
            "features",
            "component",
            "severity",
        ),
        sa.Column("first_seen_at", sa.Float(), nullable=False),
        sa.Column("last_seen_at", sa.Float(), nullable=False),
        sa.Column("occurrence_count", sa.Integer(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.CheckConstraint("fingerprint != ''", name="symptom_fingerprint"),
        sa.CheckConstraint("status in ('active', 'dormant', 'resolved')", name="symptom_status"),
        sa.CheckConstraint("first_seen_at <= last_seen_at", name="symptom_times"),
        sa.CheckConstraint("occurrence_count >= 1", name="symptom_count"),
        sa.PrimaryKeyConstraint("symptom_id"),
        sa.UniqueConstraint("fingerprint", name="one_symptom_per_fingerprint"),
    )


def _versions() -> None:
    op.create_table(
        "versions",
        sa.Column("version_id", sa.Integer(), nullable=False),
        sa.Column("label", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("version_id"),
        sa.UniqueConstraint("label", name="one_version_per_label"),
    )


def _symptom_bands() -> None:
    op.create_table(
        "symptom_bands",
        sa.Column("band", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("symptom_id", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["symptom_id"], ["symptoms.symptom_id"]),
        sa.PrimaryKeyConstraint("band", "symptom_id"),
        sqlite_with_rowid=False,
    )


def _suites() -> None:
    op.create_table(
        "suites",
        sa.Column("suite_id", sa.Integer(), nullable=False),
        sa.Column("run_id", sa.Integer(), nullable=False),
        *_texts("name", "description", "status"),
        sa.Column("created_at", sa.Float(), nullable=False),
        sa.Column("closed_at", sa.Float(), nullable=True),
        sa.CheckConstraint("(status = 'closed') = (closed_at is not null)", name="suite_closed"),
        sa.CheckConstraint("status in ('open', 'closed')", name="suite_status"),
        sa.CheckConstraint("created_at <= closed_at", name="suite_times"),
        sa.ForeignKeyConstraint(["run_id"], ["runs.run_id"]),
        sa.PrimaryKeyConstraint("suite_id"),
        sa.UniqueConstraint("run_id", name="one_suite_per_run"),
    )


def _circuits() -> None:
    op.create_table(
        "circuits",
        sa.Column("circuit_id", sa.Integer(), nullable=False),
        sa.Column("suite_id", sa.Integer(), nullable=False),
        sa.Column("version_id", sa.Integer(), nullable=False),
        *_texts("name", "status"),
        sa.Column("started_at", sa.Float(), nullable=True),
        sa.Column("ended_at", sa.Float(), nullable=True),
        sa.ForeignKeyConstraint(["suite_id"], ["suites.suite_id"]),
        sa.ForeignKeyConstraint(["version_id"], ["versions.version_id"]),
        sa.PrimaryKeyConstraint("circuit_id"),
        sa.UniqueConstraint("suite_id", "version_id", "name", name="one_circuit_per_name"),
    )


def _rcas() -> None:
    op.create_table(
        "rcas",
        sa.Column("rca_id", sa.Integer(), nullable=False),
        sa.Column("case_no", sa.Integer(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        *_texts(
            "title",
            "description",
            "defect_type",
            "category",
            "component",
            "affected_versions",
            "evidence",
        ),
        sa.Column("convergence_score", sa.Float(), nullable=True),
        *_texts("jira_ticket_id", "jira_link", "status"),
        sa.Column("created_at", sa.Float(), nullable=False),
        sa.Column("resolved_at", sa.Float(), nullable=True),
        sa.Column("verified_at", sa.Float(), nullable=True),
        sa.Column("archived_at", sa.Float(), nullable=True),
        sa.CheckConstraint(
            "(status = 'archived') = (archived_at is not null)", name="rca_archived"
        ),
        sa.CheckConstraint(
            "category in ('product', 'automation', 'infra', 'flake', 'firmware', 'unknown')",
            name="rca_category",
        ),
        sa.CheckConstraint(
            "status = 'archived' or"
            " (resolved_at is not null) = (status in ('resolved', 'verified'))",
            name="rca_resolved",
        ),
        sa.CheckConstraint(
            "status = 'archived' or (verified_at is not null) = (status = 'verified')",
            name="rca_verified",
        ),
        sa.CheckConstraint(
            "status in ('open', 'resolved', 'verified', 'archived')", name="rca_status"
        ),
        sa.CheckConstraint("attempt >= 0", name="rca_attempt"),
        sa.CheckConstraint("convergence_score between 0 and 1", name="rca_score"),
        sa.CheckConstraint(
            "created_at <= resolved_at and resolved_at <= verified_at and created_at <= archived_at"
            " and resolved_at <= archived_at and verified_at <= archived_at",
            name="rca_times",
        ),
        sa.ForeignKeyConstraint(["case_no"], ["cases.case_no"]),
        sa.PrimaryKeyConstraint("rca_id"),
        sa.UniqueConstraint("case_no", "attempt", name="one_rca_per_attempt"),
    )
    op.create_index(
        "one_open_rca_per_case",
        "rcas",
        ["case_no"],
        unique=True,
        sqlite_where=sa.text("status = 'open'"),
    )


def _sightings() -> None:
    op.create_table(
        "sightings",
        sa.Column("symptom_id", sa.Integer(), nullable=False),
        sa.Column("case_no", sa.Integer(), nullable=False),
        sa.Column("at", sa.Float(), nullable=False),
        sa.ForeignKeyConstraint(["case_no"], ["cases.case_no"]),
        sa.ForeignKeyConstraint(["symptom_id"], ["symptoms.symptom_id"]),
        sa.PrimaryKeyConstraint("symptom_id", "case_no"),
        sqlite_with_rowid=False,
    )


def _launches() -> None:
    op.create_table(
        "launches",
        sa.Column("launch_id", sa.Integer(), nullable=False),
        sa.Column("circuit_id", sa.Integer(), nullable=False),
        sa.Column("launch_key", sa.Text(), nullable=False),
        sa.Column("rp_launch_id", sa.Integer(), nullable=True),
        *_texts("uuid", "name", "status"),
        sa.Column("started_at", sa.Float(), nullable=True),
        sa.Column("ended_at", sa.Float(), nullable=True),
        *_texts(
            "env_attributes", "git_branch", "git_commit", "git_remote", "url", "ci_url", "project"
        ),
        sa.Column("tests", sa.Integer(), nullable=False),
        sa.Column("failed", sa.Integer(), nullable=False),
        sa.Column("skipped", sa.Integer(), nullable=False),
        sa.Column("payload", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["circuit_id"], ["circuits.circuit_id"]),
        sa.PrimaryKeyConstraint("launch_id"),
        sa.UniqueConstraint("circuit_id", "launch_key", name="one_launch_per_key"),
    )


def _symptom_rca() -> None:
    op.create_table(
        "symptom_rca",
        sa.Column("symptom_id", sa.Integer(), nullable=False),
        sa.Column("rca_id", sa.Integer(), nullable=False),
        sa.Column("case_no", sa.Integer(), nullable=False),
        sa.Column("confidence", sa.Float(), nullable=True),
        sa.Column("notes", sa.Text(), nullable=False),
        sa.Column("linked_at", sa.Float(), nullable=False),
        sa.CheckConstraint("confidence between 0 and 1", name="link_confidence"),
        sa.ForeignKeyConstraint(["case_no"], ["cases.case_no"]),
        sa.ForeignKeyConstraint(["rca_id"], ["rcas.rca_id"]),
        sa.ForeignKeyConstraint(["symptom_id"], ["symptoms.symptom_id"]),
        sa.PrimaryKeyConstraint("symptom_id", "rca_id"),
    )
    op.create_index("symptoms_of_rca", "symptom_rca", ["rca_id"], unique=False)


def _jobs() -> None:
    op.create_table(
        "jobs",
        sa.Column("job_id", sa.Integer(), nullable=False),
        sa.Column("launch_id", sa.Integer(), nullable=False),
        sa.Column("rp_item_id", sa.Integer(), nullable=True),
        *_texts("name", "clock_type", "status"),
        sa.Column("tests", sa.Integer(), nullable=False),
        sa.Column("failed", sa.Integer(), nullable=False),
        sa.Column("skipped", sa.Integer(), nullable=False),
        sa.Column("started_at", sa.Float(), nullable=True),
        sa.Column("ended_at", sa.Float(), nullable=True),
        sa.ForeignKeyConstraint(["launch_id"], ["launches.launch_id"]),
        sa.PrimaryKeyConstraint("job_id"),
        sa.UniqueConstraint("launch_id", "job_id", name="jobs_of_launch"),
        sa.UniqueConstraint("launch_id", "name", name="one_job_per_name"),
    )


def _rca_cases() -> None:
    op.create_table(
        "rca_cases",
        sa.Column("case_no", sa.Integer(), nullable=False),
        sa.Column("job_id", sa.Integer(), nullable=False),
        sa.Column("launch_id", sa.Integer(), nullable=False),
        sa.Column("failure_id", sa.Text(), nullable=False),
        sa.Column("rp_item_id", sa.Integer(), nullable=True),
        *_texts("name", "class_name", "status"),
        sa.Column("symptom_id", sa.Integer(), nullable=True),
        sa.Column("rca_id", sa.Integer(), nullable=True),
        *_texts("error_message", "error_pattern", "test_name_pattern", "features", "log_snippet"),
        sa.Column("log_truncated", sa.Integer(), nullable=False),
        *_texts("fingerprint", "bands"),
        sa.Column("started_at", sa.Float(), nullable=True),
        sa.Column("ended_at", sa.Float(), nullable=True),
        sa.Column("created_at", sa.Float(), nullable=False),
        sa.Column("updated_at", sa.Float(), nullable=False),
        *_texts("decision", "reviewed_by"),
        sa.Column("is_regression", sa.Integer(), nullable=False),
        sa.Column("recalled", sa.Integer(), nullable=False),
        *_texts("notes", "draft"),
        sa.CheckConstraint("decision in ('', 'approve', 'overturn')", name="rca_case_decision"),
        sa.CheckConstraint("status != 'reviewed' or decision != ''", name="rca_case_reviewed"),
        sa.CheckConstraint(
            "status in ('open', 'triaged', 'investigated', 'reviewed', 'closed')",
            name="rca_case_status",
        ),
        sa.ForeignKeyConstraint(["case_no"], ["cases.case_no"]),
        sa.ForeignKeyConstraint(["launch_id", "job_id"], ["jobs.launch_id", "jobs.job_id"]),
        sa.ForeignKeyConstraint(["rca_id"], ["rcas.rca_id"]),
        sa.ForeignKeyConstraint(
            ["symptom_id", "rca_id"], ["symptom_rca.symptom_id", "symptom_rca.rca_id"]
        ),
        sa.ForeignKeyConstraint(["symptom_id"], ["symptoms.symptom_id"]),
        sa.PrimaryKeyConstraint("case_no"),
        sa.UniqueConstraint("launch_id", "failure_id", name="one_case_per_failure"),
    )
    op.create_index("cases_of_rca", "rca_cases", ["rca_id"], unique=False)
    op.create_index(
        "cases_not_closed",
        "rca_cases",
        ["launch_id"],
        unique=False,
        sqlite_where=sa.text("status != 'closed'"),
    )
    op.create_index("cases_of_symptom", "rca_cases", ["symptom_id", "rca_id"], unique=False)


def _triages() -> None:
    op.create_table(
        "triages",
        sa.Column("case_no", sa.Integer(), nullable=False),
        *_texts("category", "severity", "hypothesis", "candidate_repos"),
        sa.Column("skip", sa.Integer(), nullable=False),
        sa.Column("clock_skew", sa.Integer(), nullable=False),
        sa.Column("cascade", sa.Integer(), nullable=False),
        sa.Column("notes", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Float(), nullable=False),
        sa.CheckConstraint(
            "category in ('product', 'automation', 'infra', 'flake', 'firmware', 'unknown')",
            name="triage_category",
        ),
        sa.ForeignKeyConstraint(["case_no"], ["rca_cases.case_no"]),
        sa.PrimaryKeyConstraint("case_no"),
    )
