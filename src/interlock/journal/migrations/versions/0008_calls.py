"""Calls: what requests to model endpoints have cost, and which model answered."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "calls",
        sa.Column("call_id", number, nullable=False),
        sa.Column("run_id", number, nullable=False),
        sa.Column("dispatch_id", number, nullable=False),
        sa.Column("at", sa.Float(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("request_id", sa.Text(), nullable=False),
        sa.Column("input", number, nullable=False),
        sa.Column("cached", number, nullable=False),
        sa.Column("cache_write", number, nullable=False),
        sa.Column("output", number, nullable=False),
        sa.Column("money", sa.Float(), nullable=False),
        sa.Column("is_estimate", number, nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.run_id"]),
        sa.ForeignKeyConstraint(["dispatch_id"], ["dispatches.dispatch_id"]),
        sa.PrimaryKeyConstraint("call_id"),
    )
