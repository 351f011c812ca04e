"""The role of a repository, as its files tell it."""

import pytest

from interlock.rca.sources.git.roles import guess_role


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
