"""Agreed: whether anybody has reviewed a root cause is found without looking at all its cases."""

from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.drop_index("cases_of_rca", "rca_cases")
    op.create_index("cases_of_rca", "rca_cases", ["rca_id", "status"], unique=False)
