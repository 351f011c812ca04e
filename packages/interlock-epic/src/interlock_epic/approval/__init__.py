"""Let people approve on GitHub issues, by comments and labels."""
