"""The loop of a run, and what it needs: prompts, budgets, pauses, notifications, applications."""
