"""Keep the state of an epic in files that survive a crash."""
