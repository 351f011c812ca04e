"""Run the project's checks, keep a baseline, and judge the results."""
