"""Root cause analysis: failing tests in, root causes out, over the steps F0 to F6. Pure."""
