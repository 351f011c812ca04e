"""A till: what a customer pays, in cents."""
