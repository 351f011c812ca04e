"""A package whose entry points cannot be loaded."""
