"""What became of a plan: live board, Markdown, JSON and web page."""
