"""What a build fetched, and for whom."""

from interlock.rca.analyst.mentions import Fetched, fetched

LOG = """[INFO] Scanning for projects...
Downloaded from central: https://x/org/box/box-bom/1.0/box-bom-1.0.pom (1 kB)
Downloaded from central: https://x/org/box/box-parent/1.0/box-parent-1.0.pom (1 kB)
[INFO] ----------------------< org.shop:first >----------------------
Downloaded from central: https://x/org/box/lid/1.0/lid-1.0.pom (1 kB)
Downloaded from central: https://x/org/box/lid/1.0/lid-1.0.jar (1 kB)
[INFO] --- compiler:3.1:compile (default) @ first ---
Downloaded from central: https://x/org/tool/press/1.0/press-1.0.jar (1 kB)
[INFO] ----------------------< org.shop:second >---------------------
Downloaded from central: https://x/org/box/hinge/1.0/hinge-1.0.jar (1 kB)
[INFO] --- compiler:3.1:compile (default) @ second ---
"""


def test_a_module_a_model_and_a_tool() -> None:
    assert fetched(LOG) == Fetched(
        depended=frozenset({"lid", "hinge"}),
        last=frozenset({"hinge"}),
        managing=frozenset({"box-bom"}),
        order={"box-bom": 0, "box-parent": 1, "lid": 2},
    )


def test_of_what_many_versions_were_asked_for() -> None:
    asked = [f"Downloaded from x: https://x/org/lid/{n}/lid-{n}.pom (1 kB)\n" for n in range(3)]
    assert fetched("".join(asked)).contested == {"lid"}
    assert fetched("".join([*asked[:2], asked[0]])).contested == frozenset()


def test_other_logs_fetch_nothing() -> None:
    assert fetched("") == fetched("Downloaded nothing\n--- x ---\n") == Fetched()
