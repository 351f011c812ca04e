"""The environment an agent starts with: what every program needs, and what its profile lets in.

A list of what may pass, not of what may not: a secret of another tool has a name nobody thought of.
"""

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase

EVERYONE = (  # noqa: SIM905 - shorter to read than a list
    "PATH HOME USER LOGNAME SHELL LANG LANGUAGE LC_* TERM COLORTERM NO_COLOR TZ TMPDIR XDG_*"
    " HTTP_PROXY HTTPS_PROXY NO_PROXY ALL_PROXY http_proxy https_proxy no_proxy all_proxy"
    " SSL_CERT_FILE SSL_CERT_DIR NODE_EXTRA_CA_CERTS REQUESTS_CA_BUNDLE"
    " VIRTUAL_ENV NVM_DIR NVM_BIN PYENV_ROOT JAVA_HOME GOPATH GOROOT CARGO_HOME RUSTUP_HOME"
).split()


def cleaned(
    environ: Mapping[str, str], let_in: Iterable[str] = (), also: Mapping[str, str] | None = None
) -> dict[str, str]:
    """What everyone may have, what matches `let_in` (such as `ANTHROPIC_*`), and `also`."""
    patterns = (*EVERYONE, *let_in)
    kept = {
        name: value
        for name, value in environ.items()
        if any(fnmatchcase(name, pattern) for pattern in patterns)
    }
    return kept | dict(also or {})
