"""Tokens for the HTTP API: who may do what, and until when.

A secret is 256 random bits, so one salted SHA-256 of it is as good as a slow hash: there is nothing
to guess. Rows are written even while a run holds the file, because no run depends on them.
"""

import hashlib
import hmac
import re
import secrets
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from interlock.journal.address import DatabaseAddress
from interlock.journal.connection import Connection, RawConnection, lock_until_commit
from interlock.journal.database import write_beside
from interlock.system.errors import StateError

SCOPES: Final = ("read", "answer", "upload", "work")
"""The rights of a token: look, answer questions, send results, do an agent's work."""
_SECRET: Final = re.compile(r"interlock_([0-9a-f]{12})_([0-9a-f]{64})", re.ASCII)
_COARSE: Final = 300.0
"""Seconds within which another use of a token is not recorded."""
_COLUMNS: Final = (
    "token_id, name, salt, hash, scopes, created_at, created_by, expires_at, used_at, revoked_at"
)
_NOBODY: Final = ("", "", b"\0" * 16, b"\0" * 32, "", 0.0, "", None, None, 0.0)


class Token(msgspec.Struct, frozen=True):
    """A token without its secret, which is not kept."""

    token_id: str
    """A part of the secret, which identifies the token of a leaked secret."""
    name: str
    scopes: tuple[str, ...]
    created_at: float
    created_by: str
    expires_at: float | None
    used_at: float | None
    """When it was last used, to a few minutes."""
    revoked_at: float | None

    def describe_state(self, at: float) -> str:
        """Return `valid`, `expired` or `revoked`."""
        if self.revoked_at is not None:
            return "revoked"
        return "expired" if self.expires_at is not None and self.expires_at <= at else "valid"


def create_token(
    db: DatabaseAddress,
    name: str,
    scopes: Iterable[str],
    *,
    by: str,
    at: float,
    expires_at: float | None,
) -> tuple[Token, str]:
    """Create a token, and return it with its secret, which is kept nowhere."""
    token_id, secret, salt = secrets.token_hex(6), secrets.token_hex(32), secrets.token_bytes(16)
    words = " ".join(scopes)
    row = (token_id, name, salt, _hash(salt, secret), words, at, by, expires_at, None, None)
    with write_beside(db) as raw:
        lock_until_commit(raw, "tokens")
        taken = "select 1 from tokens where name = ? and revoked_at is null"
        if raw.execute(taken, (name,)).fetchone():
            raise StateError(
                f"there is a token {name!r} already: revoke it with 'interlock token revoke "
                f"{name}', or choose another name"
            )
        raw.execute(f"insert into tokens ({_COLUMNS}) values ({', '.join('?' * len(row))})", row)  # noqa: S608
    return _build_token(row), f"interlock_{token_id}_{secret}"


def revoke_token(db: DatabaseAddress, name: str, at: float) -> Token:
    """Revoke a token at once; raise StateError if no valid token has that name."""
    with write_beside(db) as raw:
        query = f"select {_COLUMNS} from tokens where name = ? and revoked_at is null"  # noqa: S608
        row = raw.execute(query, (name,)).fetchone()
        if row is None:
            raise StateError(f"there is no token {name!r}; 'interlock token list' lists them")
        raw.execute("update tokens set revoked_at = ? where token_id = ?", (at, row[0]))
    return msgspec.structs.replace(_build_token(row), revoked_at=at)


def list_tokens(connection: Connection) -> list[Token]:
    """Return all tokens ever created, oldest first."""
    query = f"select {_COLUMNS} from tokens order by created_at, token_id"  # noqa: S608
    return [_build_token(row) for row in connection.raw.execute(query)]


def find_token(connection: Connection, secret: str, at: float) -> Token | None:
    """Return the valid token of that secret, if there is one.

    A wrong secret takes the same time wherever it is wrong.
    """
    found = _SECRET.fullmatch(secret)
    row = _read_row(connection.raw, found[1]) if found else None
    salt, kept = (row or _NOBODY)[2:4]
    is_right = hmac.compare_digest(_hash(bytes(salt), found[2] if found else ""), bytes(kept))
    if row is None or not is_right:
        return None
    token = _build_token(row)
    return token if token.describe_state(at) == "valid" else None


def note_use(db: DatabaseAddress, token: Token, at: float) -> None:
    """Record the use of a token, unless one was recorded a few minutes ago."""
    if token.used_at is None or at - token.used_at >= _COARSE:
        with write_beside(db) as raw:
            raw.execute("update tokens set used_at = ? where token_id = ?", (at, token.token_id))


def _read_row(raw: RawConnection, token_id: str) -> Any:
    query = f"select {_COLUMNS} from tokens where token_id = ?"  # noqa: S608
    return raw.execute(query, (token_id,)).fetchone()


def _hash(salt: bytes, secret: str) -> bytes:
    return hashlib.sha256(salt + secret.encode()).digest()


def _build_token(row: Any) -> Token:
    token_id, name, _, _, scopes, created_at, created_by, expires_at, used_at, revoked_at = row
    return Token(
        token_id,
        name,
        tuple(scopes.split()),
        created_at,
        created_by,
        expires_at,
        used_at,
        revoked_at,
    )
