"""A stack's words find the files they mean, and no others."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock_rca.sources.git.stack_paths import PathIndex, parse_word

PATHS = [
    "setup.py",
    "src/shop/cart.py",
    "src/shop/basket/cart.py",
    "lib/pay/cart.py",
    "core/src/main/java/org/example/shop/Cart.java",
    "web/src/cart.ts",
    "web/src/cart.spec.ts",
    "pkg/stock/stock.go",
    "Makefile",
]
INDEX = PathIndex((path, None) for path in PATHS)


@pytest.mark.parametrize(
    ("word", "found", "shared"),
    [
        ("shop/cart.py", ["src/shop/cart.py"], 2),
        ("shop/cart.py:12", ["src/shop/cart.py"], 2),
        ("shop/cart.py:12:5", ["src/shop/cart.py"], 2),
        ("./shop/cart.py#L3-L9", ["src/shop/cart.py"], 2),
        ("/home/ci/build/src/shop/cart.py", ["src/shop/cart.py"], 3),
        ("/build/lib/python3/site-packages/shop/cart.py", ["src/shop/cart.py"], 2),
        ("C:\\work\\src\\shop\\cart.py", ["src/shop/cart.py"], 3),
        ("basket/cart.py", ["src/shop/basket/cart.py"], 2),
        ("cart.py", ["lib/pay/cart.py", "src/shop/basket/cart.py", "src/shop/cart.py"], 1),
        ("other/cart.py", [], 0),
        ("org/example/shop/Cart.java", ["core/src/main/java/org/example/shop/Cart.java"], 4),
        ("org.example.shop.Cart", ["core/src/main/java/org/example/shop/Cart.java"], 4),
        ("org.example.shop.Cart.add", ["core/src/main/java/org/example/shop/Cart.java"], 4),
        ("org.example.shop.Cart$Line.add", ["core/src/main/java/org/example/shop/Cart.java"], 4),
        ("org.example.shop.Cart$1", ["core/src/main/java/org/example/shop/Cart.java"], 4),
        ("shop.cart.Cart.add", ["src/shop/cart.py"], 2),
        ("Cart.java", ["core/src/main/java/org/example/shop/Cart.java"], 1),
        ("webpack:///./src/cart.ts:3:1", ["web/src/cart.ts"], 2),
        ("git.example.org/acme/pkg/stock/stock.go", ["pkg/stock/stock.go"], 3),
        ("/somewhere/setup.py", ["setup.py"], 1),
        ("cart.rb", [], 0),
        ("Makefile", ["Makefile"], 1),
        ("", [], 0),
        ("///", [], 0),
        ("..", [], 0),
        (":::12", [], 0),
    ],
)
def test_the_files_a_word_means(word: str, found: list[str], shared: int) -> None:
    matches = INDEX.find(word)
    assert [match.path for match in matches] == found
    assert {match.shared for match in matches} <= {shared}


def test_things_of_one_path_stay_in_their_order() -> None:
    index = PathIndex([("a/b.py", 2), ("a/c.py", 9), ("a/b.py", 1)])
    assert [match.things for match in index.find("a/b.py")] == [(2, 1)]


@given(st.text(max_size=200))
def test_any_word_can_be_asked(word: str) -> None:
    for names, _ in parse_word(word):
        assert names
        assert ".." not in names
    assert len(INDEX.find(word)) <= len(PATHS)


@given(st.sampled_from(PATHS), st.lists(st.sampled_from(["a", "b-1", "Üb"]), max_size=4))
def test_a_file_is_found_from_any_root(path: str, root: list[str]) -> None:
    assert path in [match.path for match in INDEX.find("/".join(["", *root, path]))]
