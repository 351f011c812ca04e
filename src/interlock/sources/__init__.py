"""The world: what is read from, or written to, outside systems. Synchronous; knows no circuit."""
