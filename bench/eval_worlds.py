"""Worlds whose culprits are known: small repositories with a planted fault, and its failing test.

Everything is made from a seed: names, order and innocent commits. No world is copied from a
project, and nothing of it appears in the analyst's rules.
"""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from xml.sax.saxutils import quoteattr

import msgspec

from interlock.system.git import Git
from interlock_rca.seed_repository import SeedCommit, seed_repository

NOUNS = tuple(
    "anchor basket candle dagger engine falcon garden hammer insect jacket kettle ladder magnet "  # noqa: SIM905
    "needle orchid parrot quiver ribbon saddle temple urchin velvet walnut yonder zephyr".split()
)
VERBS = ("weigh", "count", "merge", "split", "order", "price", "route", "store", "paint", "label")
PEOPLE = ("Ada <ada@example.org>", "Ben <ben@example.org>", "Cleo <cleo@example.org>")
START = datetime(2026, 1, 5, 9, tzinfo=UTC)


class Language(msgspec.Struct, frozen=True):
    """How one language writes a module, its test and a failing run."""

    name: str
    module: str
    test: str
    product: Callable[[str, str, str, int], str]
    """Source from noun, verb, the helper it calls and the number it adds."""
    check: Callable[[str, str], str]
    stack: Callable[[str, str, str, str], str]
    """The stack of a failure: module, test, verb, and whether it leads into the product."""
    manifest: str
    pin: str
    missing: str


def _python(noun: str, verb: str, helper: str, number: int) -> str:
    use = f"from app.{helper} import base\n\n\n" if helper else ""
    start = "base()" if helper else "0"
    return f"{use}def {verb}_{noun}(value):\n    return value + {start} + {number}\n"


def _javascript(noun: str, verb: str, helper: str, number: int) -> str:
    use = f"const {{ base }} = require('./{helper}');\n\n" if helper else ""
    start = "base()" if helper else "0"
    name = verb + noun.title()
    body = f"function {name}(value) {{\n  return value + {start} + {number};\n}}\n\n"
    return f"{use}{body}module.exports = {{ {name} }};\n"


def _go(noun: str, verb: str, helper: str, number: int) -> str:
    start = f"{helper.title()}Base()" if helper else "0"
    name = verb.title() + noun.title()
    return (
        f"package app\n\nfunc {name}(value int) int {{\n\treturn value + {start} + {number}\n}}\n"
    )


def _java(noun: str, verb: str, helper: str, number: int) -> str:
    start = f"{helper.title()}.base()" if helper else "0"
    head = f"package app;\n\npublic class {noun.title()} {{\n  public static int "
    return f"{head}{verb}(int value) {{\n    return value + {start} + {number};\n  }}\n}}\n"


LANGUAGES = (
    Language(
        name="Python",
        module="app/{noun}.py",
        test="tests/test_{noun}.py",
        product=_python,
        check=lambda noun, verb: (
            f"from app.{noun} import {verb}_{noun}\n\n\n"
            f"def test_{verb}_{noun}():\n    assert {verb}_{noun}(1) == 2\n"
        ),
        stack=lambda module, test, verb, inside: (
            f'  File "{test}", line 5, in test_{verb}\n'
            + (f'  File "{module}", line 2, in {verb}\n' if inside else "")
            + "AssertionError: assert 3 == 2"
        ),
        manifest="requirements.txt",
        pin="{name}=={version}\n",
        missing="ModuleNotFoundError: No module named '{name}.core'",
    ),
    Language(
        name="JavaScript",
        module="lib/{noun}.js",
        test="test/{noun}.test.js",
        product=_javascript,
        check=lambda noun, verb: (
            f"const {{ {verb}{noun.title()} }} = require('../lib/{noun}');\n\n"
            f"test('{verb} {noun}', () => {{\n  expect({verb}{noun.title()}(1)).toBe(2);\n}});\n"
        ),
        stack=lambda module, test, verb, inside: (
            "Error: expect(received).toBe(expected)\n\n"
            "Expected: 2\nReceived: 3\n"
            + (f"    at {verb} (/build/{module}:4:10)\n" if inside else "")
            + f"    at Object.<anonymous> (/build/{test}:4:30)"
        ),
        manifest="package.json",
        pin='{{"dependencies": {{"{name}": "{version}"}}}}\n',
        missing="Error: Cannot find module '{name}/core'",
    ),
    Language(
        name="Go",
        module="app/{noun}.go",
        test="app/{noun}_test.go",
        product=_go,
        check=lambda noun, verb: (
            f'package app\n\nimport "testing"\n\nfunc Test{verb.title()}'
            f"{noun.title()}(t *testing.T) {{\n"
            f"\tif got := {verb.title()}{noun.title()}(1); got != 2"
            ' {\n\t\tt.Errorf("got %d, want 2", got)\n\t}\n}\n'
        ),
        stack=lambda module, test, verb, inside: (
            (
                "panic: runtime error: index out of range\n"
                f"\tapp/{module.rpartition('/')[2]}:4 +0x1d\n"
                if inside
                else ""
            )
            + f"    {test.rpartition('/')[2]}:7: got 3, want 2"
        ),
        manifest="go.mod",
        pin="module example.org/app\n\nrequire example.org/{name} v{version}\n",
        missing="no required module provides package example.org/{name}/core",
    ),
    Language(
        name="Java",
        module="src/main/java/app/{Noun}.java",
        test="src/test/java/app/{Noun}Test.java",
        product=_java,
        check=lambda noun, verb: (
            f"package app;\n\npublic class {noun.title()}Test {{\n"
            f"  @Test public void {verb}() {{ assertEquals(2, {noun.title()}.{verb}(1)); }}\n}}\n"
        ),
        stack=lambda module, test, verb, inside: (
            "java.lang.AssertionError: expected:<2> but "
            "was:<3>\n"
            + (f"\tat app.{Path(module).stem}.{verb}({Path(module).name}:5)\n" if inside else "")
            + f"\tat app.{Path(test).stem}.{verb}({Path(test).name}:4)"
        ),
        manifest="pom.xml",
        pin="<project><dependency><artifactId>{name}</artifactId><version>{version}</version>"
        "</dependency></project>\n",
        missing="java.lang.NoClassDefFoundError: org/{name}/Core",
    ),
)


class EvalWorld(msgspec.Struct, frozen=True):
    """One world on disk."""

    language: str
    kind: str
    report: Path
    repo: Path
    culprit: str
    """The planted commit; empty where no commit is to blame."""
    category: str
    last: str
    touched: str
    """The last commit that touched a file of the stack; empty if there is none."""


Plan = tuple[list[SeedCommit], str, bool, str]
"""Commits after the green one, the message of the failure, whether the stack leads into the
product, and the true category."""


class _Builder:
    """The parts of one world."""

    def __init__(self, language: Language, chance: Random) -> None:
        self.language, self.chance = language, chance
        self.nouns = chance.sample(NOUNS, 8)
        self.verb = chance.choice(VERBS)
        self.subject, self.helper = self.nouns[0], self.nouns[1]
        self._minutes = 0

    def path(self, template: str, noun: str) -> str:
        return template.format(noun=noun, Noun=noun.title())

    def module(self, noun: str) -> str:
        return self.path(self.language.module, noun)

    def source(self, noun: str, number: int) -> str:
        helper = self.helper if noun == self.subject else ""
        return self.language.product(noun, self.verb, helper, number)

    def commit(self, message: str, write: Mapping[str, str], **more: object) -> SeedCommit:
        self._minutes += self.chance.randint(5, 300)
        at = START + timedelta(minutes=self._minutes)
        who = self.chance.choice(PEOPLE)
        return SeedCommit(author=who, at=at, message=message, write=write, **more)  # type: ignore[arg-type]

    def first(self) -> SeedCommit:
        files = {self.module(noun): self.source(noun, 1) for noun in self.nouns}
        files |= {
            self.path(self.language.test, noun): self.language.check(noun, self.verb)
            for noun in self.nouns
        }
        files[self.language.manifest] = self.pin("marble", "1.4.0")
        files["settings.ini"] = "[limits]\nbudget = 30\n"
        return self.commit("Begin", files, tags=("green",))

    def pin(self, name: str, version: str) -> str:
        return self.language.pin.format(name=name, version=version)

    def innocent(self) -> SeedCommit:
        noun = self.chance.choice(self.nouns[2:])
        number = self.chance.randint(2, 99)
        return self.commit(f"Improve {noun}", {self.module(noun): self.source(noun, number)})


def _plan_plain(world: _Builder) -> Plan:
    write = {world.module(world.subject): world.source(world.subject, 2)}
    return [world.commit("Simplify a sum", write, id="culprit")], "", True, "product"


def _plan_assertion(world: _Builder) -> Plan:
    commits, _, _, category = _plan_plain(world)
    return commits, "", False, category


def _plan_indirect(world: _Builder) -> Plan:
    write = {world.module(world.helper): world.source(world.helper, 2)}
    return [world.commit("Tidy a base value", write, id="culprit")], "", False, "product"


def _plan_rename(world: _Builder) -> Plan:
    old, new = world.module(world.subject), world.module(f"{world.subject}s")
    source = world.source(world.subject, 2)
    moved = world.commit("Use the plural", {new: source}, remove=(old,), id="culprit")
    return [moved], "", False, "product"


def _plan_dependency(world: _Builder) -> Plan:
    write = {world.language.manifest: world.pin("marble", "2.0.0")}
    message = world.language.missing.format(name="marble")
    return [world.commit("Update dependencies", write, id="culprit")], message, False, "product"


def _plan_settings(world: _Builder) -> Plan:
    write = {"settings.ini": "[limits]\nbudgets = 30\n"}
    message = "no option 'budget' in section 'limits'"
    return [world.commit("Align settings", write, id="culprit")], message, False, "product"


def _plan_sweeping(world: _Builder) -> Plan:
    commits, *_ = _plan_plain(world)
    header = "# " if world.language.name == "Python" else "// "
    everything = {
        world.module(noun): f"{header}Licence: see LICENSE\n" + world.source(noun, 1)
        for noun in world.nouns[1:]
    }
    subject = world.source(world.subject, 2)
    everything[world.module(world.subject)] = f"{header}Licence: see LICENSE\n{subject}"
    return [*commits, world.commit("Add licence headers", everything)], "", True, "product"


def _plan_infra(world: _Builder) -> Plan:
    message = "ConnectionRefusedError: [Errno 111] Connection refused: db.internal:5432"
    return [world.innocent()], message, False, "infra"


def _plan_flake(world: _Builder) -> Plan:
    message = "Timed out after 5000 ms waiting for element to be visible"
    return [world.innocent()], message, False, "flake"


def _plan_build(world: _Builder) -> Plan:
    """The tests pass, and packaging fails: a console log is all there is."""
    write = {"Makefile": "package:\n\ttar -cf dist.tar build/bundle\n"}
    log = (
        "9 passed in 0.31s\n"
        "tar -cf dist.tar build/bundle\n"
        "tar: build/bundle: Cannot stat: No such file or directory\n"
        "make: *** [Makefile:2: package] Error 2\n"
    )
    return [world.commit("Pack the bundle", write, id="culprit")], log, False, "product"


BUILD = "build after green"
PLANS: dict[str, Callable[[_Builder], Plan]] = {
    "plain bug": _plan_plain,
    "assertion only": _plan_assertion,
    "through an import": _plan_indirect,
    "rename": _plan_rename,
    "dependency": _plan_dependency,
    "settings": _plan_settings,
    "beside a sweep": _plan_sweeping,
    "environment": _plan_infra,
    "flake": _plan_flake,
    BUILD: _plan_build,
}


def build_world(folder: Path, language: Language, kind: str, seed: int) -> EvalWorld:
    """One world in that folder; the same seed gives the same hashes."""
    world = _Builder(language, Random(f"{seed} {language.name} {kind}"))
    first = world.first()
    before = [world.innocent() for _ in range(world.chance.randint(2, 6))]
    planted, message, inside, category = PLANS[kind](world)
    # Now and then nothing comes after it: the newest commit must have its chance to be the one.
    after = [world.innocent() for _ in range(world.chance.randint(0, 6))]
    repo = folder / "repo"
    repo.mkdir(parents=True)
    hashes = seed_repository(repo, [first, *before, *planted, *after])
    test = world.path(language.test, world.subject)
    module = world.module(world.subject)
    stack = language.stack(module, test, world.verb, "inside" if inside else "")
    text = message or stack.split("\n")[0 if language.name == "Java" else -1]
    report = folder / ("console.log" if kind == BUILD else "report.xml")
    report.write_text(
        message
        if kind == BUILD
        else f'<testsuite name="app" tests="9" failures="1"><testcase file="{test}" '
        f'classname="{Path(test).stem}" name="{world.verb}_{world.subject}">'
        f"<failure message={quoteattr(text)}>{message or stack}</failure></testcase></testsuite>\n",
        encoding="utf-8",
    )
    history = [*before, *planted, *after]
    commits = _list_hashes(repo)[-len(history) :]
    named = {test, module} if inside else {test}
    touching = [
        hash_
        for hash_, each in zip(commits, history, strict=True)
        if named & {*each.write, *each.remove}
    ]
    return EvalWorld(
        language=language.name,
        kind=kind,
        report=report,
        repo=repo,
        culprit=hashes.get("culprit", ""),
        category=category,
        last=commits[-1],
        touched=touching[-1] if touching else "",
    )


def _list_hashes(repo: Path) -> list[str]:
    return Git(repo).read_line("rev-list", "--reverse", "--topo-order", "main").split()
