"""The loop.

Takes replies, decides, commits, dispatches. Prompts, budgets, pauses, notifications.
"""
