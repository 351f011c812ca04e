"""The window's own pages. Each module has its handlers; here is how they are found."""

from typing import Final

from interlock.web.app import NavLink, Section
from interlock.web.assets import send_asset
from interlock.web.pages import home, login

OWN_SECTIONS: Final = {
    "window": Section(
        "",
        (NavLink("/", "Home", "h"),),
        (home.show_home, home.show_icon, login.ask_token, login.take_token, send_asset),
    ),
}
"""They come first in the navigation."""
