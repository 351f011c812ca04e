"""The role of a repository, as its files tell it."""

import pytest

from interlock.system.errors import SourceError
from interlock_rca.sources.git.open import parse_repo, read_repo_tables
from interlock_rca.sources.git.roles import guess_role


@pytest.mark.parametrize(
    ("paths", "role"),
    [
        (["shop/cart.py", "shop/tax.py", "README.md"], "product"),
        (["shop/cart.py", "tests/test_cart.py"], "mixed"),
        (["cart.go", "cart_test.go", "tax.go"], "mixed"),
        (["tests/test_cart.py", "tests/conftest.py", "setup.cfg", "README.md"], "tests"),
        ([f"e2e/cart{n}.spec.ts" for n in range(9)] + ["playwright.config.ts"], "tests"),
        (["main.tf", "prod.tfvars", "charts/shop/values.yaml", "README.md"], "infrastructure"),
        ([".github/workflows/ci.yml", "Dockerfile", "shop/a.py", "shop/b.py", "c.py"], "product"),
        (["README.md", "LICENSE"], ""),
        ([], ""),
    ],
)
def test_a_role_is_told_by_files(paths: list[str], role: str) -> None:
    assert guess_role(paths) == role


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("shop-tests", "tests"),
        ("team/shop_e2e", "tests"),
        ("Shop-TestSuite", "tests"),
        ("contests", "mixed"),
        ("shop-tests-runner", "mixed"),
        ("shop", "mixed"),
    ],
)
def test_what_is_called_tests_and_has_some_is_for_tests(name: str, role: str) -> None:
    pages = ["pages/cart.py", "pages/tax.py"]
    assert guess_role([*pages, "tests/test_cart.py"], name) == role
    assert guess_role(pages, name) == "product"


def test_a_role_is_declared_in_a_table_or_as_a_purpose_of_one_word() -> None:
    table = {"name": "shop", "path": "/shop", "purpose": "the product and its tests"}
    (old,), (new,) = read_repo_tables([table]), read_repo_tables([{**table, "role": "mixed"}])
    assert (old.role, new.role) == ("", "mixed")
    assert (parse_repo("shop=/shop:tests").role, parse_repo("shop=/shop:the tests").role) == (
        "tests",
        "",
    )
    with pytest.raises(
        SourceError, match="the role 'test' is not known; known are: product, tests"
    ):
        read_repo_tables([{**table, "role": "test"}])
