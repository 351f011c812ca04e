"""What test runners and CI systems print: counts, and the names and messages of failed tests."""
