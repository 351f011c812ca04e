"""`python -m interlock`."""

from interlock.cli.door import main

main()
