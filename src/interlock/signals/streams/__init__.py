"""What agent CLIs print, decoded: one event stream for all of them."""
