"""Compare git with the checkpoint after an interruption, and act on the difference."""
