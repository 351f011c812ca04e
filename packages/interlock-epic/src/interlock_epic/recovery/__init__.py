"""What git looks like after an interruption, and what is done about it."""
