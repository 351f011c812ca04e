"""Reproductions: runs of tests at single commits, what they prove, and what the analyst learnt."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.create_table(
        "reproduction_runs",
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("record", sa.Text(), nullable=False),
        sa.Column("at", sa.Float(), nullable=False),
        sa.CheckConstraint("attempt >= 1", name="reproduction_attempt"),
        sa.PrimaryKeyConstraint("key", "attempt"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "reproductions",
        sa.Column("suite_id", sa.Integer(), nullable=False),
        sa.Column("family", sa.Text(), nullable=False),
        sa.Column("case_no", sa.Integer(), nullable=False),
        sa.Column("record", sa.Text(), nullable=False),
        sa.Column("at", sa.Float(), nullable=False),
        sa.ForeignKeyConstraint(["case_no"], ["cases.case_no"]),
        sa.ForeignKeyConstraint(["suite_id"], ["suites.suite_id"]),
        sa.PrimaryKeyConstraint("suite_id", "family"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "analyst_models",
        sa.Column("model_id", sa.Integer(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("evaluation", sa.Text(), nullable=False),
        sa.Column("examples", sa.Text(), nullable=False),
        sa.Column("made_at", sa.Float(), nullable=False),
        sa.CheckConstraint("status in ('active', 'retired', 'refused')", name="model_status"),
        sa.PrimaryKeyConstraint("model_id"),
    )
    op.create_index(
        "one_active_model",
        "analyst_models",
        ["status"],
        unique=True,
        sqlite_where=sa.text("status = 'active'"),
    )
