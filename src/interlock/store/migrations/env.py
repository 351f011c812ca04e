"""Runs the migrations on the connection that store.database hands over."""

from alembic import context

from interlock.store.schema import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
with context.begin_transaction():
    context.run_migrations()
