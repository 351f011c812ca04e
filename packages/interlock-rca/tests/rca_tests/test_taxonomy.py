"""One taxonomy: every word has one meaning, and mapping there and back is the identity."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.system.errors import SourceError
from interlock_rca.taxonomy import TAXONOMY, Defect

CODES = ["pb001", "ab001", "si001", "nd001", "fw001", "ti001"]
CATEGORIES = ["product", "automation", "infra", "flake", "firmware", "unknown"]


@pytest.mark.parametrize(("category", "code"), list(zip(CATEGORIES, CODES, strict=True)))
def test_category_and_code_map_there_and_back(category: str, code: str) -> None:
    assert TAXONOMY.find_code_of_category(category) == code
    assert TAXONOMY.find_category_of_code(code) == category
    assert TAXONOMY.explain_word(category) == ""


@pytest.mark.parametrize(
    ("word", "code"),
    [
        ("au001", "ab001"),
        ("en001", "si001"),
        (" PB001 ", "pb001"),
        ("AU001", "ab001"),
        ("fw001", "fw001"),
        ("ib003", "ib003"),
        ("xx001", None),
        ("", None),
        ("product", None),
    ],
)
def test_a_code_is_found_by_itself_and_by_its_alias(word: str, code: str | None) -> None:
    assert TAXONOMY.find_code(word) == code


@pytest.mark.parametrize(
    ("word", "category"),
    [
        ("timeout", "unknown"),
        ("assertion", "unknown"),
        ("crash", "unknown"),
        ("config", "unknown"),
        ("environment", "infra"),
        ("Infra", "infra"),
        ("weather", None),
    ],
)
def test_words_of_other_times(word: str, category: str | None) -> None:
    assert TAXONOMY.find_category(word) == category


def test_who_uses_a_word_of_the_surface_is_told() -> None:
    assert TAXONOMY.explain_word("timeout") == (
        "'timeout' says how it looks, not where the fault lives; often si001 or ab001"
    )
    assert TAXONOMY.explain_word("environment") == "'environment' is called 'infra' here"
    assert TAXONOMY.explain_word("weather") == "this is not a category"


def test_an_infrastructure_bug_is_understood_and_not_offered() -> None:
    assert TAXONOMY.find_category_of_code("ib003") == "infra"
    assert "ib003" not in TAXONOMY.format_all()


@given(st.text())
def test_reading_a_word_twice_changes_nothing(word: str) -> None:
    code, category = TAXONOMY.find_code(word), TAXONOMY.find_category(word)
    assert code is None or TAXONOMY.find_code(code) == code
    assert category is None or TAXONOMY.find_category(category) == category


@given(
    st.dictionaries(
        st.from_regex(r"[a-z]{2}[0-9]{3}", fullmatch=True), st.sampled_from(CATEGORIES), max_size=6
    )
)
def test_own_codes_are_added_and_nothing_is_lost(own: dict[str, str]) -> None:
    taxonomy = TAXONOMY.with_codes(own)
    for code, category in own.items():
        assert taxonomy.find_code(code) == code
        assert taxonomy.find_category_of_code(code) == category
        assert f"- `{code}`: " in taxonomy.format_all()
    for word in (*CODES, "au001", "en001", "ib003"):
        if word not in own:
            assert taxonomy.find_code(word) == TAXONOMY.find_code(word)
    assert TAXONOMY.find_code("zz998") is None


def test_an_alias_may_become_a_code_of_its_own() -> None:
    own = TAXONOMY.with_codes({"au001": Defect("automation", "Our\n test  bug")})
    assert own.find_code("au001") == "au001"
    assert own.find_code("en001") == "si001"
    assert "- `au001`: Our test bug (automation)" in own.format_codes().split("\n")


@pytest.mark.parametrize(
    ("own", "result"),
    [
        ({"9": "product"}, "'9' is not a defect code"),
        ({"a b": "product"}, "'a b' is not a defect code"),
        (
            {"zz001": "weather"},
            "defect code 'zz001' has the category 'weather'; use one of product",
        ),
        (
            {"zz001": "timeout"},
            "defect code 'zz001' has the category 'timeout'; use one of product",
        ),
    ],
)
def test_a_bad_code_of_a_project_is_refused(own: dict[str, str], result: str) -> None:
    with pytest.raises(SourceError, match=result):
        TAXONOMY.with_codes(own)


def test_the_lines_of_a_prompt() -> None:
    lines = TAXONOMY.format_all().split("\n")
    for code in CODES:
        assert sum(line.startswith(f"- `{code}`: ") for line in lines) == 1
    for category in CATEGORIES:
        assert sum(line.startswith(f"- `{category}`: ") for line in lines) == 1
    for alias in ("au001", "en001", "timeout", "environment"):
        assert alias not in TAXONOMY.format_all()
