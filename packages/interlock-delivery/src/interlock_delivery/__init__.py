"""Delivery: a plan's tasks through developer, critic and auditor."""
