"""Pages: times for machines."""

from interlock.system.html import format_machine_time


def test_machines_get_iso_times_or_nothing() -> None:
    assert format_machine_time("2031-03-04T02:00:00+02:00") == "2031-03-04T00:00:00+00:00"
    assert format_machine_time("soon") == ""
