"""Report on a delivery: live board, Markdown, JSON and HTML."""
