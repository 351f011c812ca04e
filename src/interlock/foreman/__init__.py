"""Delivery at work: what the steps of the circuit `delivery` need, and what they lead to."""
