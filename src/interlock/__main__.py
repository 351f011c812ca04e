"""`python -m interlock`."""

from interlock.cli import main

main()
