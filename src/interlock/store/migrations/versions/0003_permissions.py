"""What agents at work ask leave for."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.create_table(
        "permissions",
        sa.Column("dispatch_id", sa.Integer(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("asked_at", sa.Float(), nullable=False),
        sa.Column("until", sa.Float(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.Column("decision", sa.Text()),
        sa.Column("decided_by", sa.Text()),
        sa.Column("decided_at", sa.Float()),
        sa.PrimaryKeyConstraint("dispatch_id", "number"),
        sa.ForeignKeyConstraint(["dispatch_id"], ["dispatches.dispatch_id"]),
        sa.CheckConstraint("decision in ('allow', 'reject')", name="permission_decision"),
        sa.CheckConstraint(
            "(decision is null) = (decided_by is null)"
            " and (decision is null) = (decided_at is null)",
            name="permission_decided",
        ),
    )
