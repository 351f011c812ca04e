"""Style and script of the pages: files of this package, sent with an ETag and kept by browsers."""

from collections.abc import Mapping
from hashlib import blake2b
from importlib import resources
from typing import Any, Final

import msgspec
from litestar import Request, Response, get
from litestar.exceptions import NotFoundException

from interlock_web.access import OPEN
from interlock_web.callers import ANY

PATH: Final = "/static/"
"""Assets lie here; they hold no secrets, and a page that asks for the token needs them."""
_KINDS: Final = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}


class Asset(msgspec.Struct, frozen=True):
    body: bytes
    kind: str
    tag: str


class Assets:
    """The files of `static/`, read once."""

    def __init__(self, files: Mapping[str, Asset]) -> None:
        self._files = files

    def find(self, name: str) -> Asset | None:
        return self._files.get(name)

    def find_url(self, name: str) -> str:
        """Return the address of an asset, which changes with its content."""
        return f"{PATH}{name}?v={self._files[name].tag}"


def load_assets() -> Assets:
    found: dict[str, Asset] = {}
    for file in resources.files("interlock_web").joinpath("static").iterdir():
        kind = _KINDS.get(file.name.rpartition(".")[2])
        if kind:
            body = file.read_bytes()
            found[file.name] = Asset(body, kind, blake2b(body, digest_size=8).hexdigest())
    return Assets(found)


@get("/static/{name:str}", sync_to_thread=False, opt={OPEN: True, "scopes": (ANY,)})
def send_asset(request: Request[Any, Any, Any], window: Any, name: str) -> Response[bytes]:
    """Send an asset, or 304 if the browser has it already."""
    asset = window.assets.find(name)
    if asset is None:
        raise NotFoundException
    tag = f'"{asset.tag}"'
    lasting = request.query_params.get("v") == asset.tag
    headers = {
        "etag": tag,
        "cache-control": "public, max-age=31536000, immutable" if lasting else "no-cache",
    }
    if tag in request.headers.get("if-none-match", ""):
        return Response(b"", status_code=304, headers=headers, media_type=asset.kind)
    return Response(asset.body, headers=headers, media_type=asset.kind)
