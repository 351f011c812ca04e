"""Limits: rate limits as pauses, time by day and role, and questions about a run itself."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

_STATUSES = (
    "status in ('running', 'stopped', 'waiting', 'rate-limited', 'budget', 'done', 'unhealthy')"
)


def upgrade() -> None:
    with op.batch_alter_table("runs") as runs:
        runs.drop_constraint("run_status", type_="check")
        runs.create_check_constraint("run_status", _STATUSES)
    _inquiries()
    _pauses()
    _worked()


def _inquiries() -> None:
    op.create_table(
        "inquiries",
        sa.Column("question_id", sa.Integer(), nullable=False),
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("about", sa.Text(), nullable=False),
        sa.Column("asked_at", sa.Float(), nullable=False),
        sa.Column("answered_at", sa.Float(), nullable=True),
        sa.Column("answered_by", sa.Text(), nullable=True),
        sa.Column("answer", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["run_id"], ["runs.run_id"]),
        sa.PrimaryKeyConstraint("question_id"),
    )


def _pauses() -> None:
    op.create_table(
        "pauses",
        sa.Column("pause_id", sa.Integer(), nullable=False),
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.Column("dispatch_id", sa.Integer(), nullable=False),
        sa.Column("account", sa.Text(), nullable=False),
        sa.Column("at", sa.Float(), nullable=False),
        sa.Column("until", sa.Float(), nullable=False),
        sa.Column("guesses", sa.Integer(), nullable=False),
        sa.Column("tokens", sa.Integer(), nullable=False),
        sa.Column("money", sa.Float(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.run_id"]),
        sa.ForeignKeyConstraint(["dispatch_id"], ["dispatches.dispatch_id"]),
        sa.PrimaryKeyConstraint("pause_id"),
    )


def _worked() -> None:
    op.create_table(
        "worked",
        sa.Column("day", sa.Text(), nullable=False),
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("seconds", sa.Float(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.run_id"]),
        sa.PrimaryKeyConstraint("day", "run_id", "role"),
        sqlite_with_rowid=False,
    )
