"""What things cost, in cents."""


def total(prices):
    """The sum of all prices."""
    return sum(prices)
