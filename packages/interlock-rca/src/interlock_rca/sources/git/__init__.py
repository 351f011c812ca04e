"""What git knows about a failure: history, changes, contents, evidence."""
