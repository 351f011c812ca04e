"""The window's own pages. Each module has its handlers; here is how they are found."""

from typing import Final

from interlock_web.assets import send_asset
from interlock_web.pages import cases, circuits, home, inbox, login, runs, stream
from interlock_web.sections import NavLink, Section

OWN_SECTIONS: Final = {
    "window": Section(
        "",
        (
            NavLink("/", "Home", "h"),
            NavLink("/inbox", "Inbox", "i"),
            NavLink("/runs", "Runs", "r"),
            NavLink("/circuits", "Circuits", "c"),
            NavLink("/agents", "Agents", "a"),
        ),
        (
            home.show_home,
            home.show_runs,
            home.show_icon,
            runs.show_run,
            runs.find_case,
            cases.show_case,
            cases.send_file,
            inbox.show_inbox,
            inbox.show_question,
            inbox.take_answer,
            circuits.show_circuits,
            circuits.show_circuit,
            circuits.show_agents,
            stream.send_changes,
            login.ask_token,
            login.take_token,
            send_asset,
        ),
        rank=0,
    ),
}
"""They come first in the navigation."""
