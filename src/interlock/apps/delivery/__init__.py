"""Delivery: plan tasks through developer, critic and auditor, with evidence instead of claims."""
