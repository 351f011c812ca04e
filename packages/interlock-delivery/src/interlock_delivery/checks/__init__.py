"""Checks that Interlock runs itself: their results, the baseline, the verdict."""
