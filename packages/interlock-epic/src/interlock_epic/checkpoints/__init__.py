"""Where an epic stands, kept in files that survive a crash."""
