"""Root-cause analysis: failing tests in, root causes out."""
