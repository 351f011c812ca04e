"""The example circuit `change`, as tests run it: by its path."""

from tests.world.places import ROOT

CHANGE_FILE = ROOT / "examples" / "change" / "circuit.yaml"
CHANGE = str(CHANGE_FILE)
