"""Artefacts: what a build's log says of them, and which one broke it."""

import pytest

from bench.artefacts import (
    ACCUSED_WEIGHT,
    Downloads,
    rank_artefacts,
    read_build_words,
    read_downloads,
)
from interlock_rca.records import Failure


def test_what_is_missing_is_accused() -> None:
    result = read_build_words(Failure(id="1", log="ERROR: package org.box.lid does not exist\n"))
    assert result.names == {"org.box.lid": ACCUSED_WEIGHT}
    assert result.words["lid"] == ACCUSED_WEIGHT


def test_a_frame_counts_less_the_deeper_it_is() -> None:
    log = "ERROR: odd\n\tat org.box.Lid.open(Lid.java:1)\n\tat org.oven.Gas.on(Gas.java:2)\n"
    result = read_build_words(Failure(id="1", log=log))
    assert result.names == {"org.box.Lid.open": 1 / 2, "org.oven.Gas.on": 1 / 3}


def test_own_code_and_the_language_are_not_their_own_dependency() -> None:
    log = (
        "ERROR: /b/src/main/java/org/shop/cart/Cart.java:[1,2] cannot find org.shop.cart.Tax\n"
        "ERROR: cannot access java.util.list.List\n"
    )
    assert not [name for name in read_build_words(Failure(id="1", log=log)).names if "Tax" in name]
    assert not [
        name for name in read_build_words(Failure(id="1", log=log)).names if "java.util" in name
    ]


def test_who_runs_the_build_is_not_who_broke_it() -> None:
    log = "ERROR: Failed to execute goal org.tool:press:1.0:run: org.box:lid:jar:2 requires tea\n"
    assert read_build_words(Failure(id="1", log=log)).coordinates == {"org.box:lid": 2.0}


def test_in_a_tree_of_conflicts_the_direct_dependency_counts_most() -> None:
    log = """WARNING: conflict
Dependency convergence error for org.nut:bolt:1.0 paths to dependency are:
+-org.shop:cart:1.0
  +-org.box:lid:2.0
    +-org.oven:gas:2.0
      +-org.nut:bolt:1.0
"""
    result = read_build_words(Failure(id="1", log=log))
    assert result.coordinates == {"org.shop:cart": 0.3, "org.box:lid": 3.0, "org.oven:gas": 0.3}
    assert result.about_versions


def test_archives_are_named_by_their_files() -> None:
    log = "ERROR: bad class file: /m2/org/box/lid/1.2/lid-1.2.jar(/org/box/Lid.class)\n"
    assert read_build_words(Failure(id="1", log=log)).archives == {"lid": 1.0}


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
    assert read_downloads(LOG) == Downloads(
        dependencies=frozenset({"lid", "hinge"}),
        last_dependencies=frozenset({"hinge"}),
        version_managers=frozenset({"box-bom"}),
        order={"box-bom": 0, "box-parent": 1, "lid": 2},
    )


def test_of_what_many_versions_were_asked_for() -> None:
    asked = [f"Downloaded from x: https://x/org/lid/{n}/lid-{n}.pom (1 kB)\n" for n in range(3)]
    assert read_downloads("".join(asked)).contested == {"lid"}
    assert read_downloads("".join([*asked[:2], asked[0]])).contested == frozenset()


def test_other_logs_fetch_nothing() -> None:
    assert read_downloads("") == read_downloads("Downloaded nothing\n--- x ---\n") == Downloads()


ARTEFACTS = ("org.box:hinge", "org.box:lid", "org.oven:gas", "org.oven:gas-parent", "net.tea:pot")


def rank_first(failure: Failure) -> str:
    return rank_artefacts(failure, ARTEFACTS)[0].candidate


@pytest.mark.parametrize(
    ("log", "culprit"),
    [
        ("ERROR: package org.oven.gas.valve does not exist", "org.oven:gas"),
        ("ERROR: java.lang.NoClassDefFoundError: org/box/hinge/Pin", "org.box:hinge"),
        ("ERROR: Dependency net.tea:pot:jar:2.0 requires water 1.0", "net.tea:pot"),
        ("ERROR: bad class file: /m2/org/box/lid/1.2/lid-1.2.jar", "org.box:lid"),
        ("ERROR: cannot find symbol class HingeMaker", "org.box:hinge"),
    ],
)
def test_artefacts(log: str, culprit: str) -> None:
    assert rank_first(Failure(id="1", log=log)) == culprit


def fetching(*files: str) -> str:
    """The log of a module that fetched these in this order, then broke on org.box."""
    lines = [f"Downloaded from x: https://x/org/box/{file} (1 kB)" for file in files]
    banner, step = (
        "[INFO] ---< org.shop:shop >---",
        "[INFO] --- compiler:3.1:compile (x) @ shop ---",
    )
    broken = "[ERROR] lid and hinge do not fit"
    return "\n".join([banner, *lines, step, broken])


JARS = ("lid/1/lid-1.jar", "hinge/1/hinge-1.jar")


@pytest.mark.parametrize("names", [("lid", "hinge"), ("hinge", "lid")])
def test_what_was_asked_for_first_brought_the_others(names: tuple[str, str]) -> None:
    poms = [f"{name}/1/{name}-1.pom" for name in names]
    assert rank_first(Failure(id="1", log=fetching(*poms, *JARS))) == f"org.box:{names[0]}"


@pytest.mark.parametrize("name", ["hinge", "pot"])
def test_what_was_asked_for_in_many_versions(name: str) -> None:
    poms = [f"{name}/{number}/{name}-{number}.pom" for number in range(3)]
    log = fetching(*poms, f"{name}/2/{name}-2.jar", "lid/1/lid-1.jar")
    found = {one.candidate: one.why for one in rank_artefacts(Failure(id="1", log=log), ARTEFACTS)}
    assert "contested" not in found.get("net.tea:pot", "")  # nobody speaks of it
    assert ("contested" in found.get("org.box:hinge", "")) == (name == "hinge")
