"""Alembic's environment: runs on the connection that `storage.schema` hands in."""

from alembic import context

from storage.tables import metadata

context.configure(
    connection=context.config.attributes["connection"], target_metadata=metadata, render_as_batch=True
)
with context.begin_transaction():
    context.run_migrations()
