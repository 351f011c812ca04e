"""A client for one server, on the ways that the environment names.

Knows that proxies and certificates come from the environment, and may be wrong there. Refuses to
know what is asked.
"""

from collections.abc import Mapping

import httpx

from interlock.system.errors import SourceError


def http_client(
    url: str, headers: Mapping[str, str], timeout_s: float, setting: str
) -> httpx.Client:
    """A client of that server, whose address comes from that `setting`."""
    try:
        return httpx.Client(base_url=url, timeout=timeout_s, headers=headers)
    except (httpx.InvalidURL, ValueError, ImportError, OSError) as error:
        raise SourceError(
            f"The way to {url} is not understood ({short(error)}): check {setting}, "
            "HTTP_PROXY, HTTPS_PROXY, ALL_PROXY, NO_PROXY, SSL_CERT_FILE and SSL_CERT_DIR."
        ) from None


def short(said: object) -> str:
    """In one line, and not a long one."""
    return " ".join(str(said).split())[:300]
