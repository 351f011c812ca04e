"""The example circuit `change`, as tests run it: by its path."""

from pathlib import Path

CHANGE_FILE = Path(__file__).parents[2] / "examples" / "change" / "circuit.yaml"
CHANGE = str(CHANGE_FILE)
