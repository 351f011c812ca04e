"""The command `asterisk`: root-cause analysis by hand."""

from interlock.__main__ import load_patiently


def main() -> None:
    """Run the command `asterisk`."""
    load_patiently("interlock_rca.cli.by_hand").main()
