"""The first tables."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    _blobs()
    _runs()
    _cases()
    _refusals()
    _dispatches()
    _journal()
    _questions()


def _blobs() -> None:
    op.create_table(
        "blobs",
        sa.Column("blob_id", sa.Integer(), nullable=False),
        sa.Column("hash", sa.LargeBinary(), nullable=False),
        sa.Column("packed", sa.Integer(), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("blob_id"),
    )


def _runs() -> None:
    op.create_table(
        "runs",
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.Column("circuit", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("text", sa.Integer(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("fingerprint", sa.Text(), nullable=False),
        sa.Column("options", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("seconds", sa.Float(), nullable=False),
        sa.Column("created_at", sa.Float(), nullable=False),
        sa.Column("changed_at", sa.Float(), nullable=False),
        sa.CheckConstraint(
            "status in ('running', 'stopped', 'waiting', 'budget', 'done', 'unhealthy')",
            name="run_status",
        ),
        sa.ForeignKeyConstraint(
            ["text"],
            ["blobs.blob_id"],
        ),
        sa.PrimaryKeyConstraint("run_id"),
    )


def _cases() -> None:
    op.create_table(
        "cases",
        sa.Column("case_no", sa.Integer(), nullable=False),
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.Column("case_id", sa.Text(), nullable=False),
        sa.Column("input", sa.Integer(), nullable=False),
        sa.Column("priority", sa.Integer(), nullable=False),
        sa.Column("needs", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("step", sa.Text(), nullable=False),
        sa.Column("dispatch_id", sa.Integer(), nullable=True),
        sa.Column("state", sa.Text(), nullable=False),
        sa.CheckConstraint("status in ('open', 'ended', 'stuck')", name="case_status"),
        sa.ForeignKeyConstraint(
            ["input"],
            ["blobs.blob_id"],
        ),
        sa.ForeignKeyConstraint(
            ["run_id"],
            ["runs.run_id"],
        ),
        sa.PrimaryKeyConstraint("case_no"),
        sa.UniqueConstraint("run_id", "case_id"),
    )


def _refusals() -> None:
    op.create_table(
        "refusals",
        sa.Column("refusal_id", sa.Integer(), nullable=False),
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.Column("case_no", sa.Integer(), nullable=True),
        sa.Column("dispatch_id", sa.Integer(), nullable=True),
        sa.Column("at", sa.Float(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("sentence", sa.Text(), nullable=False),
        sa.Column("content", sa.Integer(), nullable=False),
        sa.Column("content_hash", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["content"],
            ["blobs.blob_id"],
        ),
        sa.ForeignKeyConstraint(
            ["run_id"],
            ["runs.run_id"],
        ),
        sa.PrimaryKeyConstraint("refusal_id"),
        sa.UniqueConstraint("run_id", "dispatch_id", "reason", "content_hash"),
    )


def _dispatches() -> None:
    op.create_table(
        "dispatches",
        sa.Column("dispatch_id", sa.Integer(), nullable=False),
        sa.Column("case_no", sa.Integer(), nullable=False),
        sa.Column("step", sa.Text(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("prompt", sa.Integer(), nullable=False),
        sa.Column("at", sa.Float(), nullable=False),
        sa.ForeignKeyConstraint(
            ["case_no"],
            ["cases.case_no"],
        ),
        sa.ForeignKeyConstraint(
            ["prompt"],
            ["blobs.blob_id"],
        ),
        sa.PrimaryKeyConstraint("dispatch_id"),
    )


def _journal() -> None:
    op.create_table(
        "journal",
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("case_no", sa.Integer(), nullable=False),
        sa.Column("dispatch_id", sa.Integer(), nullable=False),
        sa.Column("at", sa.Float(), nullable=False),
        sa.Column("answer", sa.Integer(), nullable=False),
        sa.Column("tokens", sa.Integer(), nullable=False),
        sa.Column("money", sa.Float(), nullable=False),
        sa.Column("decision", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["answer"],
            ["blobs.blob_id"],
        ),
        sa.ForeignKeyConstraint(
            ["case_no"],
            ["cases.case_no"],
        ),
        sa.ForeignKeyConstraint(
            ["dispatch_id"],
            ["dispatches.dispatch_id"],
        ),
        sa.PrimaryKeyConstraint("seq"),
        sa.UniqueConstraint("case_no", "dispatch_id", name="one_answer_per_dispatch"),
    )


def _questions() -> None:
    op.create_table(
        "questions",
        sa.Column("question_id", sa.Integer(), nullable=False),
        sa.Column("case_no", sa.Integer(), nullable=False),
        sa.Column("answered_at", sa.Float(), nullable=True),
        sa.Column("answered_by", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["case_no"],
            ["cases.case_no"],
        ),
        sa.ForeignKeyConstraint(
            ["question_id"],
            ["dispatches.dispatch_id"],
        ),
        sa.PrimaryKeyConstraint("question_id"),
    )
