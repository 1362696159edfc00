"""How Alembic runs a migration: over the connection that `sexton.store.schema.upgrade` gives it, in its transaction."""

from alembic import context

context.configure(connection=context.config.attributes["connection"], transactional_ddl=True)
context.run_migrations()
