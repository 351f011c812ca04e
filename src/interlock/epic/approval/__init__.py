"""Approval by people on GitHub issues: comments, labels, webhooks."""
