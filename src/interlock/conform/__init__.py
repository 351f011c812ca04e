"""The conformance kit: puts any watcher through the file protocol and says what it did."""
