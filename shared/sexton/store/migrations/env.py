"""How Alembic runs a migration: over the connection that `sexton.store.schema.upgrade` gives it, in its transaction."""

from alembic import context

from sexton.store.indexes import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata, transactional_ddl=True)
context.run_migrations()
