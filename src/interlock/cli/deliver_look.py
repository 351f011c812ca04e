"""Verbs that look at a delivery, tell it, and take its workshop away: status, report, clean."""

from pathlib import Path

from interlock.cli.deliver import deliver
from interlock.cli.delivered import as_json
from interlock.cli.delivered import status as in_words
from interlock.cli.delivering import find_delivery, told_of
from interlock.cli.show import Db, Json, RunId, document, say


@deliver.command()
def status(run_id: RunId = None, db: Db = None, json: Json = False) -> None:
    """How each task of a delivery stands. Disturbs nobody, also while it is at work."""
    from interlock import wiring
    from interlock.store.database import reading

    path = wiring.database(Path(), db)
    with reading(path) as connection:
        told = told_of(connection, find_delivery(connection, run_id), path)
    if json:
        document(as_json(told))
        return
    for line in in_words(told):
        say(line)
