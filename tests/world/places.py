"""Where the parts of the repository lie."""

import os
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "packages").glob("*/src"))
PYTHONPATH = os.pathsep.join([*map(str, SOURCES), str(ROOT)])
"""What a program needs that is started without the environment of the tests."""
