"""Reports that features write as one HTML file, shown in the window as they are.

Such a page brings its own policy, which names its style and its script by their hashes and forbids
all else. The server repeats it as a header and puts the page into a sandbox: script that was in a
log cannot act in the reader's name.
"""

import re
from html import unescape
from typing import Final

from litestar import Response

_POLICY: Final = re.compile(r'http-equiv="Content-Security-Policy" content="([^"]{1,2000})"')
_SANDBOX: Final = "frame-ancestors 'none'; sandbox allow-scripts allow-popups allow-downloads"
_HEAD: Final = 4_000


def send_document(html: str | bytes) -> Response[bytes]:
    """Return the document as a response; ValueError if it has no policy of its own."""
    raw = html.encode() if isinstance(html, str) else html
    found = _POLICY.search(raw[:_HEAD].decode("utf-8", "replace"))
    if found is None:
        raise ValueError("a document without a content policy is not shown")
    headers = {
        "content-security-policy": f"{unescape(found[1])}; {_SANDBOX}",
        "cache-control": "no-cache",
    }
    return Response(raw, media_type="text/html; charset=utf-8", headers=headers)
