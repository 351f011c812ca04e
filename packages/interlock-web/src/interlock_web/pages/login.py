"""The page that asks for the token."""

from typing import Annotated, Any, Final

import msgspec
from litestar import Request, Response, get, post
from litestar.datastructures import Cookie
from litestar.enums import RequestEncodingType
from litestar.params import Body
from litestar.response import Redirect

from interlock_web.access import COOKIE, OPEN, AccessRules
from interlock_web.callers import ANY
from interlock_web.errors import LOGIN_PATH
from interlock_web.window import Window

_KEPT: Final = 30 * 86400
"""Seconds for which a browser keeps the token."""


class LoginForm(msgspec.Struct):
    token: str = ""
    next: str = "/"


_OPT: Final = {OPEN: True, "scopes": (ANY,)}


@get(LOGIN_PATH, sync_to_thread=False, opt=_OPT)
def ask_token(window: Window, next: str = "/") -> Response[str]:  # noqa: A002 - the query's word
    return _show_form(window, next, wrong=False)


@post(LOGIN_PATH, opt=_OPT)
async def take_token(
    request: Request[Any, Any, Any],
    window: Window,
    data: Annotated[LoginForm, Body(media_type=RequestEncodingType.URL_ENCODED)],
) -> Response[Any]:
    rules: AccessRules = request.app.state["access"]
    if rules.needs_token and await rules.identify(data.token.strip()) is None:
        return _show_form(window, data.next, wrong=True)
    found = Redirect(_keep_here(data.next), status_code=303)
    found.cookies.append(
        Cookie(COOKIE, value=data.token.strip(), max_age=_KEPT, httponly=True, samesite="strict")
    )
    return found


def _show_form(window: Window, target: str, *, wrong: bool) -> Response[str]:
    status = 401 if wrong else 200
    return window.render(
        "login.html",
        title="Sign in",
        status=status,
        next=_keep_here(target),
        wrong=wrong,
        bare=True,
        waiting=0,
    )


def _keep_here(target: str) -> str:
    """Return a path of this server, whatever was asked for."""
    plain = target.startswith("/") and not target.startswith("//") and "\\" not in target
    return target if plain and target.isprintable() else "/"
