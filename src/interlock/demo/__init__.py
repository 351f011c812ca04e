"""The demo: a small world with planted faults, its tests run for real, and the planted truth."""
