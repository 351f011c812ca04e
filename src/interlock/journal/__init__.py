"""Memory: the schema, its migrations, the one writer, the readers and the audit."""
