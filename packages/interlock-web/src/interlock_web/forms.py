"""The mark in our forms: another site can make a browser send a form, but cannot know the mark.

It belongs to a cookie of the browser and to this server's life. A form from before a restart is
refused with a sentence; the page that it is on only has to be read again.
"""

import hmac
import secrets
from hashlib import blake2b
from typing import Any, Final

from litestar import Request

from interlock.system.errors import StateError

COOKIE: Final = "interlock-browser"
"""The cookie's name, and where a request's scope holds one that the browser is yet to get."""


class FormMarks:
    """Makes marks and checks them."""

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)

    def make(self, request: Request[Any, Any, Any]) -> str:
        """The mark for a browser, which gets its cookie with the page if it has none."""
        browser = request.cookies.get(COOKIE)
        if not browser:
            scope: dict[str, Any] = request.scope  # type: ignore[assignment]
            browser = scope.setdefault(COOKIE, secrets.token_hex(16))
        return self._compute(browser)

    def check(self, request: Request[Any, Any, Any], mark: str) -> None:
        browser = request.cookies.get(COOKIE, "")
        if not browser or not hmac.compare_digest(mark.encode(), self._compute(browser).encode()):
            raise StateError(
                "this form is not from a page of this server, or from before it was restarted: "
                "open the page again and repeat the answer. Nothing was saved"
            )

    def _compute(self, browser: str) -> str:
        return blake2b(browser.encode()[:64], key=self._key, digest_size=16).hexdigest()
