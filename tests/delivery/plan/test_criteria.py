"""Which criteria somebody could test, and which only sound like it."""

import pytest

from interlock.delivery.plan.check import is_placeholder, vague


@pytest.mark.parametrize(
    "criterion",
    [
        "`uv run pytest tests/unit` exits 0",
        "`src/auth/token.py` exists",
        "A wrong password raises `AuthError`",
        "The endpoint answers within 200 ms",
        "GET /users answers HTTP 404 for an unknown id",
        "A second loan of the same copy is refused",
        "The list is sorted by due date, oldest first",
        "The code is clean: `ruff check .` exits 0",
        "Errors are handled appropriately: a timeout answers 504",
        'The page shows "No results"',
        "README.md describes the new option",
        "Passwords are hashed before they are stored",
        "Users can log out from every page",
        "The old table is gone after the migration",
    ],
)
def test_testable(criterion: str) -> None:
    assert vague(criterion) == ""
    assert not is_placeholder(criterion)


@pytest.mark.parametrize(
    "criterion",
    [
        "Code should be clean",
        "Handles errors appropriately",
        "Works properly",
        "Follow best practices",
        "Implement the login feature",
        "The login feature is implemented",
        "Should be fast",
        "Should be secure",
        "Good error handling",
        "The UI is user-friendly and intuitive",
        "Everything works",
        "Done",
        "It works as expected",
    ],
)
def test_vague(criterion: str) -> None:
    assert vague(criterion)


@pytest.mark.parametrize("text", ["[criterion]", "<what>", "...", "TODO", "TBD.", "[ ]", "{{x}}"])
def test_placeholders(text: str) -> None:
    assert is_placeholder(text)


@pytest.mark.parametrize("sign", ["[", "“", "`", "a.", "'", "{", "-a", "A_", "works "])
def test_hostile_text_is_judged(sign: str) -> None:
    vague(sign * 50_000)
    assert not is_placeholder(sign * 50_000)
