"""The findings of a suite as terminal summary, Markdown, JSON, web page and ticket."""
