"""Moving a database loses nothing."""

from pathlib import Path

import pytest

from interlock.journal.address import PostgresAddress
from interlock.journal.database import open_writer
from interlock.journal.schema import bring_up_to_date
from interlock.system.errors import StateError
from interlock_cluster.move import copy_rows, find_differences
from tests.world.tide_tables import begin, write_tables


def test_a_move_loses_no_table_that_the_target_lacks(
    tmp_path: Path, postgres: PostgresAddress
) -> None:
    begin(tmp_path / "tides", tmp_path / "i.db")
    with open_writer(tmp_path / "i.db") as source, open_writer(postgres) as target:
        with pytest.raises(StateError, match="the target lacks the table 'harbours'"):
            copy_rows(source, target, lambda _line: None)
        bring_up_to_date(target, postgres, [write_tables(tmp_path / "tides", 1)])
        copy_rows(source, target, lambda _line: None)
        assert find_differences(source, target) == []
        found = target.raw.execute("select harbour, at from tides").fetchall()
        assert found == [("Brest", 3)]
