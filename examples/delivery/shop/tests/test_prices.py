"""Prices."""

import unittest

from till import prices


class Prices(unittest.TestCase):
    def test_total(self):
        self.assertEqual(prices.total([100, 250]), 350)


if __name__ == "__main__":
    unittest.main()
