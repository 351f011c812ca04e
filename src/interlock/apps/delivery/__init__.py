"""Delivery: a plan of tasks in, reviewed and proven changes out. Pure."""
