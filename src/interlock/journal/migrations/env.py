"""Runs the migrations on the connection that store.database hands over."""

from alembic import context

from interlock.rca.knowledge.schema import all_tables

context.configure(connection=context.config.attributes["connection"], target_metadata=all_tables)
with context.begin_transaction():
    context.run_migrations()
