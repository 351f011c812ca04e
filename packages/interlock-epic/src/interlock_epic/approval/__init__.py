"""Approval by people on GitHub issues: comments and labels."""
