"""The database: its one writer, its readers and its audit."""
