"""Tokens of a project's HTTP door: create, list, revoke and check them."""

import re
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from interlock.api.inbox import find_user
from interlock.api.project import Project
from interlock.journal import tokens
from interlock.journal.tokens import SCOPES, Token, list_tokens
from interlock.system.errors import NoDatabaseError, StoreError, UsageError

__all__ = ["SCOPES", "Token", "check_token", "create_token", "read_tokens", "revoke_token"]
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,63}", re.ASCII)


def create_token(
    project: Project, name: str, scopes: Sequence[str], seconds: float | None = None
) -> tuple[Token, str]:
    """Create a token for these scopes that expires after `seconds`, if given; return it and its
    secret, which cannot be read later."""
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{name[:80]!r} is not a valid name for a token: up to 64 letters, digits and . _ @ + -"
        )
    unknown = [each for each in scopes if each not in SCOPES]
    if unknown or not scopes:
        raise UsageError(
            f"a token has scopes of {', '.join(SCOPES)}; "
            + (f"{unknown[0][:80]!r} is none" if unknown else "name at least one")
        )
    at = _read_clock(project)
    ordered = [each for each in SCOPES if each in scopes]
    until = None if seconds is None else at + seconds
    return tokens.create_token(project.db, name, ordered, by=find_user(), at=at, expires_at=until)


def read_tokens(project: Project) -> list[Token]:
    """Return all tokens ever made, oldest first, with the revoked and expired ones."""
    if not project.has_database:
        return []
    with project.read() as connection:
        return list_tokens(connection)


def revoke_token(project: Project, name: str) -> Token:
    """Revoke a token, for running servers too; StateError if there is none of that name."""
    return tokens.revoke_token(project.db, name, _read_clock(project))


def check_token(project: Project, secret: str) -> Token | None:
    """Return the token of that secret, if it is good now, and record its use.

    It is read anew each time, so a revoked one stops working at once.
    """
    at = _read_clock(project)
    try:
        with project.read() as connection:
            found = tokens.find_token(connection, secret, at)
    except NoDatabaseError:
        return None
    if found is not None:
        with suppress(StoreError):
            tokens.note_use(project.db, found, at)
    return found


def _read_clock(project: Project) -> float:
    return project.clock.now() if project.clock else time.time()
