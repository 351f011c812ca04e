"""Owners: who works on a run, under which epoch; and mail for runs, where it is no folder."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    op.add_column("journal", sa.Column("epoch", sa.Integer(), nullable=False, server_default="0"))
    op.create_table(
        "owners",
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.Column("epoch", sa.Integer(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=True),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("host", sa.Text(), nullable=False),
        sa.Column("pid", sa.Integer(), nullable=False),
        sa.Column("command", sa.Text(), nullable=False),
        sa.Column("since", sa.Float(), nullable=False),
        sa.Column("lease_until", sa.Float(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.run_id"]),
        sa.PrimaryKeyConstraint("run_id"),
    )
    op.execute("insert into owners select run_id, 0, null, '', '', 0, '', 0.0, 0.0 from runs")
    op.create_table(
        "mail",
        sa.Column("box", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("run_id", sa.Integer(), nullable=True),
        sa.Column("written_by", sa.Text(), nullable=False, server_default=""),
        sa.Column("at", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("box", "name"),
    )
