"""The benchmark is not part of the installed package: tests find it beside `tests/`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
