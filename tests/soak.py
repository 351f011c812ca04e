"""The soak: values that show again, at length, what other values of a test show already."""

import pytest
from _pytest.mark.structures import ParameterSet


def again(*values: object) -> ParameterSet:
    """Left out by `make test`, tried by `make soak`."""
    return pytest.param(*values, marks=pytest.mark.soak)
