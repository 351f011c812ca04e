"""Tokens: what is kept of them, who is let in, and that they are made beside a run at work."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.journal import tokens
from interlock.journal.address import DatabaseAddress
from interlock.journal.database import open_reader, open_writer
from interlock.system.errors import StateError
from interlock.system.secrets import MASK, mask_secrets


def find(db: DatabaseAddress, secret: str, at: float = 0.0) -> str | None:
    with open_reader(db) as connection:
        found = tokens.find_token(connection, secret, at)
    return found.name if found else None


def test_a_token_is_good_until_it_expires_or_is_revoked(db: DatabaseAddress) -> None:
    """Also while a run holds the database, and for whoever reads it next."""
    with open_writer(db):
        made, secret = tokens.create_token(
            db, "ci", ["read", "upload"], by="me", at=10.0, expires_at=100.0
        )
        assert (made.name, made.scopes) == ("ci", ("read", "upload"))
        assert (find(db, secret, 99.0), find(db, secret, 100.0)) == ("ci", None)
        with pytest.raises(StateError, match="there is a token 'ci' already: revoke it"):
            tokens.create_token(db, "ci", ["read"], by="me", at=11.0, expires_at=None)
        tokens.revoke_token(db, "ci", 20.0)
        assert find(db, secret, 30.0) is None
        with pytest.raises(StateError, match="there is no token 'ci'"):
            tokens.revoke_token(db, "ci", 21.0)
    again, other = tokens.create_token(db, "ci", ["read"], by="me", at=30.0, expires_at=None)
    assert (find(db, other), find(db, secret)) == ("ci", None)
    with open_reader(db) as connection:
        states = [each.describe_state(40.0) for each in tokens.list_tokens(connection)]
    assert (states, again.created_by) == (["revoked", "valid"], "me")


def test_only_a_hash_of_the_secret_is_kept(db: DatabaseAddress) -> None:
    _, secret = tokens.create_token(db, "a", ["read"], by="me", at=0.0, expires_at=None)
    _, twin = tokens.create_token(db, "b", ["read"], by="me", at=0.0, expires_at=None)
    hidden = secret.rpartition("_")[2]
    with open_reader(db) as connection:
        rows = connection.raw.execute("select * from tokens").fetchall()
    kept = [bytes(each) if isinstance(each, memoryview) else each for row in rows for each in row]
    assert not [
        each for each in kept if hidden in str(each) or hidden.encode() in repr(each).encode()
    ]
    assert bytes.fromhex(hidden) not in kept
    mixed = f"{secret.rpartition('_')[0]}_{twin.rpartition('_')[2]}"
    assert find(db, mixed) is None
    assert mask_secrets(f"curl -d {secret}") == f"curl -d {MASK}"


def test_use_is_noted_now_and_then(db: DatabaseAddress) -> None:
    made, secret = tokens.create_token(db, "a", ["read"], by="me", at=0.0, expires_at=None)
    for at, noted in ((1.0, 1.0), (2.0, 1.0), (300.0, 1.0), (301.0, 301.0)):
        with open_reader(db) as connection:
            found = tokens.find_token(connection, secret, at)
        assert found is not None
        tokens.note_use(db, found, at)
        with open_reader(db) as connection:
            assert tokens.list_tokens(connection)[0].used_at == noted
    assert made.used_at is None


@given(word=st.text() | st.from_regex(r"interlock_[0-9a-f]{12}_[0-9a-f]{64}", fullmatch=True))
def test_a_word_that_is_no_secret_opens_nothing(
    tmp_path_factory: pytest.TempPathFactory, word: str
) -> None:
    db = tmp_path_factory.getbasetemp() / "forged.db"
    if not db.exists():
        tokens.create_token(db, "a", ["read"], by="me", at=0.0, expires_at=None)
    assert find(db, word) is None
