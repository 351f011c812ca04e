"""Memory: the journal and what is kept beside it. Synchronous; one writer, many readers."""
