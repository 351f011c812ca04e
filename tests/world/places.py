"""Where the parts of the repository lie."""

import os
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "packages").glob("*/src"))
TESTS = sorted((ROOT / "packages").glob("*/tests"))
PYTHONPATH = os.pathsep.join(map(str, (*SOURCES, *TESTS, ROOT)))
"""What a program needs that is started without the environment of the tests."""
