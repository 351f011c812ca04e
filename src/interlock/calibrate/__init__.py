"""The measure: scenarios with a known truth, what agents made of them, and how good that is."""
