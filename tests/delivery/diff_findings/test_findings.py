"""Findings in a change: each is found where it is, and clean code has none."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.delivery.diff_findings import MOST, find_diff_issues, is_script
from interlock.delivery.diff_findings.source import DiffFinding

ROOT = Path(__file__).parents[3]


def find(path: str, text: str, only: set[int] | None = None) -> tuple[DiffFinding, ...]:
    lines = [(n, line) for n, line in enumerate(text.split("\n"), 1) if not only or n in only]
    return find_diff_issues({path: lines}, {path: text})


def kinds(path: str, text: str) -> list[tuple[int, str]]:
    return [(found.line, found.kind) for found in find(path, text)]


FOUND = [
    # notes of work left over
    ("a.py", "x = 1  # TODO: more", [(1, "leftover")]),
    ("a.py", "# FIXME later", [(1, "leftover")]),
    ("a.go", "// TODO(ann): more", [(1, "leftover")]),
    ("a.ts", "/* XXX */", [(1, "leftover")]),
    ("a.yaml", "a: 1 # TODO tune", [(1, "leftover")]),
    ("test_a.py", "# HACK: x", [(1, "leftover")]),
    # bodies that are not written
    ("a.py", "def f():\n    raise NotImplementedError", [(1, "placeholder")]),
    ("a.py", "def f():\n    '''Doc.'''\n    raise NotImplementedError('x')", [(1, "placeholder")]),
    ("a.py", "def f():\n    ...", [(1, "placeholder")]),
    ("a.py", "async def f():\n    pass", [(1, "placeholder")]),
    ("a.py", "class A:\n    def f(self):\n        ...", [(2, "placeholder")]),
    ("a.js", "f(){ throw new Error('Not implemented') }", [(1, "placeholder")]),
    ("a.go", 'panic("TODO")', [(1, "placeholder")]),
    (
        "A.java",
        'throw new UnsupportedOperationException("not yet implemented");',
        [(1, "placeholder")],
    ),
    ("a.kt", 'fun f() = TODO("x")', [(1, "placeholder")]),
    ("a.rs", "fn f() { todo!() }", [(1, "placeholder")]),
    ("A.cs", "throw new NotImplementedException();", [(1, "placeholder")]),
    # debug output
    ("a.py", "def f(x):\n    print(x)", [(2, "debug")]),
    ("a.py", "breakpoint()", [(1, "debug")]),
    ("a.py", "import pdb\npdb.set_trace()", [(1, "debug"), (2, "debug")]),
    ("test_a.py", "import ipdb", [(1, "debug")]),
    ("a.js", "console.log(x)", [(1, "debug")]),
    ("a.test.js", "debugger;", [(1, "debug")]),
    ("a.go", "package a\nfmt.Println(x)", [(2, "debug")]),
    ("A.java", "System.out.println(x);", [(1, "debug")]),
    ("A.java", "e.printStackTrace();", [(1, "debug")]),
    ("a.rs", "dbg!(x);", [(1, "debug")]),
    ("a.rb", "binding.pry", [(1, "debug")]),
    ("a.php", "var_dump($x);", [(1, "debug")]),
    # errors that vanish
    ("a.py", "try:\n    f()\nexcept:\n    log()", [(3, "bare_except")]),
    ("a.py", "try:\n    f()\nexcept Exception:\n    pass", [(3, "bare_except")]),
    ("a.py", "try:\n    f()\nexcept (KeyError, Exception) as e:\n    ...", [(3, "bare_except")]),
    ("a.js", "try { f() } catch (e) {}", [(1, "bare_except")]),
    ("A.java", "try { f(); }\ncatch (IOException e) {\n}", [(2, "bare_except")]),
    # tests that are left out
    ("test_a.py", "@pytest.mark.skip\ndef test_a():\n    assert f()", [(1, "skipped_test")]),
    (
        "test_a.py",
        "@pytest.mark.xfail(reason='x')\ndef test_a():\n    assert f()",
        [(1, "skipped_test")],
    ),
    ("test_a.py", "@unittest.skip('x')\nclass TestA:\n    pass", [(1, "skipped_test")]),
    ("test_a.py", "def test_a():\n    pytest.skip('x')\n    assert f()", [(2, "skipped_test")]),
    ("a.spec.ts", "it.skip('x', () => { expect(f()).toBe(2) })", [(1, "skipped_test")]),
    ("a.spec.ts", "describe.only('x', () => {})", [(1, "skipped_test")]),
    ("a.spec.ts", "xit('x', () => { expect(f()).toBe(2) })", [(1, "skipped_test")]),
    ("a_test.go", "func TestA(t *testing.T) {\n\tt.Skip()\n}", [(2, "skipped_test")]),
    ("ATest.java", "@Disabled\n@Test void a() { assertEquals(2, f()); }", [(1, "skipped_test")]),
    ("a.rs", "#[ignore]\n#[test]\nfn a() { assert!(f()); }", [(1, "skipped_test")]),
    # tests that cannot fail
    ("test_a.py", "def test_a():\n    f()", [(1, "empty_test")]),
    (
        "test_a.py",
        "class TestA:\n    async def test_a(self):\n        await f()",
        [(2, "empty_test")],
    ),
    ("test_a.py", "def helper():\n    g()\n\ndef test_a():\n    helper()", [(4, "empty_test")]),
    ("a.test.js", "it('x', async () => {\n  await f('expect')\n})", [(1, "empty_test")]),
    ("a_test.go", "func TestA(t *testing.T) {\n\tf()\n}", [(1, "empty_test")]),
    ("ATest.java", "@Test\npublic void a() throws E {\n  f();\n}", [(2, "empty_test")]),
    ("ATest.kt", "@Test\nfun a() {\n  f()\n}", [(2, "empty_test")]),
    ("a.rs", "#[test]\nfn a() {\n  f();\n}", [(2, "empty_test")]),
    ("test_a.py", "def test_a():\n    assert True", [(2, "meaningless_assert")]),
    ("test_a.py", "def test_a():\n    assert x == x", [(2, "meaningless_assert")]),
    ("test_a.py", "def test_a():\n    assert 1 == 1", [(2, "meaningless_assert")]),
    ("test_a.py", "def test_a():\n    assert f() or True", [(2, "meaningless_assert")]),
    ("test_a.py", "def test_a(self):\n    self.assertTrue(True)", [(2, "meaningless_assert")]),
    ("test_a.py", "def test_a(self):\n    self.assertEqual(1, 1)", [(2, "meaningless_assert")]),
    ("a.test.js", "it('x', () => { expect(true).toBe(true) })", [(1, "meaningless_assert")]),
    ("ATest.java", "@Test void a() { assertTrue(true); }", [(1, "meaningless_assert")]),
    ("a_test.go", "assert.Equal(t, 1, 1)", [(1, "meaningless_assert")]),
    # suppressions
    ("a.py", "x = f()  # noqa", [(1, "suppression")]),
    ("a.py", "x = f()  # noqa: S603", [(1, "suppression")]),
    ("a.py", "x = f()  # type: ignore", [(1, "suppression")]),
    ("a.py", "x = f()  # type: ignore[arg-type]", [(1, "suppression")]),
    ("a.ts", "// @ts-ignore", [(1, "suppression")]),
    ("a.ts", "/* eslint-disable */", [(1, "suppression")]),
    ("a.ts", "f() // eslint-disable-line no-eval", [(1, "suppression")]),
    ("a.go", "f() //nolint", [(1, "suppression")]),
    ("A.java", '@SuppressWarnings("all")', [(1, "suppression")]),
    # code that was commented out
    ("a.py", "x = 1\n# y = f(x)\n# return y", [(2, "commented_code")]),
    ("a.js", "// const x = f();\n// return x;", [(1, "commented_code")]),
    ("a.go", "// x := f()\n// if x {", [(1, "commented_code")]),
    # conflicts
    (
        "a.c",
        "<<<<<<< HEAD\nint a;\n=======\nint b;\n>>>>>>> t",
        [(1, "conflict_marker"), (5, "conflict_marker")],
    ),
    ("README.md", "<<<<<<< HEAD\nx", [(1, "conflict_marker")]),
    ("vendor/a.c", ">>>>>>> t", [(1, "conflict_marker")]),
]


@pytest.mark.parametrize(("path", "text", "expected"), FOUND)
def test_found(path: str, text: str, expected: list[tuple[int, str]]) -> None:
    assert kinds(path, text) == expected


CLEAN = [
    ("a.py", "x = 'TODO: no comment'"),
    ("a.py", '"""TODO in prose."""'),
    ("a.py", "# the todo list of a user\nTODO = 1"),
    ("todo.js", "// adds a TODO item to the list"),
    ("README.md", "TODO: write this\n\nprint(x)  # TODO"),
    ("notes.txt", "FIXME"),
    ("vendor/lib/a.js", "// TODO x\nconsole.log(1)\ndebugger"),
    ("tests/fixtures/a.py", "# TODO\nprint(1)\nbreakpoint()"),
    ("package-lock.json", '"token": "a8f5f167f44f4964e6c998dee827110c"'),
    ("a.py", "class A(Protocol):\n    def f(self) -> int: ..."),
    ("a.py", "class A(Protocol[T]):\n    def f(self) -> int: ..."),
    ("a.py", "class A(ABC):\n    def f(self):\n        raise NotImplementedError"),
    ("a.py", "class A:\n    @abstractmethod\n    def f(self): ..."),
    ("a.py", "@overload\ndef f(x: int) -> int: ..."),
    ("a.py", "class A:\n    def f(self):\n        raise NotImplementedError\nclass B(A): pass"),
    ("a.py", "if TYPE_CHECKING:\n    def f() -> int: ..."),
    ("a.py", "class E(Exception):\n    pass"),
    ("a.py", "class H(Handler):\n    def log(self):\n        pass"),
    ("a.py", "def _nothing():\n    pass"),
    ("a.pyi", "def f() -> int: ..."),
    ("test_a.py", "class Fake:\n    def f(self):\n        pass"),
    ("a.py", "def f(x):\n    print(x, file=out)"),
    ("scripts/a.py", "print(1)"),
    ("a.py", "print(1)\nif __name__ == '__main__':\n    f()"),
    ("test_a.py", "def test_a():\n    print(1)\n    assert f()"),
    ("a.py", "x = 'print(1)'  # print(1)"),
    ("a.js", "const s = 'console.log(1)' // console.log(1)"),
    ("main.go", "package main\nfmt.Println(x)"),
    ("a.py", "try:\n    f()\nexcept:\n    log()\n    raise"),
    ("a.py", "try:\n    f()\nexcept KeyError:\n    pass"),
    ("a.js", "try { f() } catch (e) { /* it may be gone */ }"),
    ("test_a.py", "@pytest.mark.skipif(WINDOWS, reason='x')\ndef test_a():\n    assert f()"),
    ("test_a.py", "def test_a():\n    with pytest.raises(E):\n        f()"),
    ("test_a.py", "def test_a():\n    client.expect(200)"),
    (
        "test_a.py",
        "def ok(x):\n    assert x\n\ndef all_ok(x):\n    ok(x)\n\ndef test_a():\n    all_ok(f())",
    ),
    ("test_a.py", "from tests.world import play\n\ndef test_a():\n    play(1)"),
    ("test_a.py", "def test_a(run_and_see):\n    run_and_see(1)"),
    ("test_a.py", "@given(st.text())\ndef test_a(x):\n    f(x)"),
    ("test_a.py", "def test_a():\n    subprocess.run(['x'], check=True)"),
    ("test_a.py", "def test_a():\n    assert f(1) == f(1)"),
    ("a.test.js", "it('x', () => { expect(f()).toBe(true) })"),
    ("a.test.js", "it('x', function (done) {\n  request(app).get('/', done)\n})"),
    ("a.test.js", "function same(a) { expect(a).toBe(2) }\nit('x', () => { same(f()) })"),
    ("a.test.js", "test(app)"),
    ("a_test.go", "func TestA(t *testing.T) {\n\tif f() != 2 {\n\t\tt.Error()\n\t}\n}"),
    ("a_test.go", "func TestA(t *testing.T) {\n\thelp(t, f())\n}"),
    ("ATest.java", '@Test\n@SuppressWarnings({"x", "y"})\nvoid a() {\n assertEquals(2, f());\n}'),
    ("a.py", "x = f()  # noqa: S603 - a list of words"),
    ("a.py", "x = f()  # type: ignore[arg-type]  # the stub is wrong"),
    ("a.ts", "f() // eslint-disable-line no-eval -- the text is ours"),
    ("a.py", "# x = 1 means that the door is open\n# and y is the rest of it"),
    ("a.py", "# see f(x)\n# for more"),
    ("a.py", "# y = f(x)"),
    ("a.go", "// Use it like this:\n//\tx := f()\n//\tg(x)"),
    ("a.rst", "Title\n=======\n"),
    ("a.py", 'X = """\n<<<<<<< HEAD\n=======\n>>>>>>> t\n"""'),
    ("a.py", "token = os.environ['TOKEN']\npassword = ''\nSECRET_NAME = 'INTERLOCK_SECRET_NAME'"),
    ("a.py", "password = 'changeme-example-1234567'"),
    ("a.yaml", 'token: "${GITHUB_TOKEN_42}"'),
    ("a.py", "url = 'postgres://user:secret@localhost/db'"),
    ("a.unknown", "TODO print(x)"),
]


@pytest.mark.parametrize(("path", "text"), CLEAN)
def test_clean(path: str, text: str) -> None:
    assert find(path, text) == ()


def _letters(size: int) -> str:
    return ("aB3dE5gH7jK9mN1pQ2rS4tU6vW8xY0z" * 9)[:size]


SECRETS = {
    "an AWS access key": "AKIA" + "Q2RSTUVWXYZABC7D",
    "a GitHub token": "ghp_" + _letters(36),
    "a GitLab token": "glpat-" + _letters(20),
    "a Slack token": "xoxb-" + _letters(24),
    "a Stripe key": "sk_live_" + _letters(24),
    "a Google API key": "AIza" + _letters(35),
    "an Anthropic key": "sk-ant-" + _letters(40),
    "an OpenAI key": "sk-" + _letters(48),
    "an npm token": "npm_" + _letters(36),
    "a Hugging Face token": "hf_" + _letters(34),
    "a private key": "-----BEGIN RSA " + "PRIVATE KEY-----",
}


@pytest.mark.parametrize(("what", "value"), SECRETS.items())
def test_secrets_are_named_and_not_shown(what: str, value: str) -> None:
    (found,) = find("src/a.py", f"x = '{value}'")
    assert (found.kind, found.severity) == ("secret", "error")
    assert found.sentence.startswith(what)
    assert value not in found.sentence
    assert value[8:] not in found.sentence
    assert [each.severity for each in find("tests/test_a.py", f"x = '{value}'")] == ["warning"]
    assert [each.severity for each in find("docs/a.md", f"x = '{value}'")] == ["warning"]


@pytest.mark.parametrize(
    "line",
    [
        "API_KEY = 'f83kQ0sLw92mXz71'",
        'password: "hT7#kq92Lm!x4"',
        '"clientSecret": "9f8a7b6c5d4e3f2a1b0c9d8e"',
        "db = 'postgres://app:hT7kq92Lmx4@db.internal/app'",
    ],
)
def test_odd_values_of_odd_names(line: str) -> None:
    assert [each.kind for each in find("src/a.yaml", line)] == ["secret"]
    assert find("tests/test_a.yaml", line) == ()


def test_only_new_lines_tell() -> None:
    text = "# TODO: old\ndef f():\n    print(1)\n\ndef g():\n    print(2)"
    assert [found.line for found in find("a.py", text, {6})] == [6]


def test_comments_that_are_apart_are_no_block_of_code() -> None:
    assert find("a.py", "# y = f(x)\nz = 1\n# z = g(y)", {1, 3}) == ()


def test_without_its_text_a_file_is_judged_by_its_new_lines() -> None:
    found = find_diff_issues({"a.js": [(70, "  debugger;"), (90, "// TODO: x")]}, {})
    assert [(found.line, found.kind) for found in found] == [(70, "debug"), (90, "leftover")]


def test_a_huge_file_is_judged_by_its_new_lines() -> None:
    text = "x = 1\n" * 300_000 + "# TODO: x"
    found = find_diff_issues({"a.py": [(300_001, "# TODO: x")]}, {"a.py": text})
    assert [(found.line, found.kind) for found in found] == [(300_001, "leftover")]


def test_of_too_many_the_gravest_are_kept() -> None:
    text = "\n".join(["x = f()  # noqa: S1"] * (MOST + 10))
    added = {"a.py": list(enumerate(text.split("\n"), 1)), "z.md": [(1, "<<<<<<< x")]}
    found = find_diff_issues(added, {"a.py": text})
    assert len(found) == MOST
    assert found[-1].kind == "conflict_marker"
    assert list(found) == sorted(found)


def test_scripts() -> None:
    assert is_script("bin/a.py", "")
    assert is_script("a.py", "#!/usr/bin/env python\n")
    assert not is_script("a.py", "x = 1")


def test_our_own_source_has_no_warning() -> None:
    texts = {
        str(file.relative_to(ROOT)): file.read_text(encoding="utf-8")
        for room in ("engine", "signals", "system", "delivery")
        for file in sorted((ROOT / "src" / "interlock" / room).rglob("*.py"))
    }
    added = {path: list(enumerate(text.split("\n"), 1)) for path, text in texts.items()}
    found = find_diff_issues(added, texts)
    assert [found for found in found if found.severity != "notice"] == []


HOSTILE = [
    "(" * 100_000,
    "[" * 5_000 + "\n",
    "def test_x(" * 3_000,
    "it('" * 20_000,
    "catch (e) {" * 20_000,
    "/*" * 50_000,
    '"""' * 9_999,
    "`" * 9_999,
    "'" + "\\" * 100_000,
    "\0\n\ud800\n\u2028x",
    "# " + "=" * 100_000,
    "x = f(" + "a, " * 50_000 + ")",
    "password = '" + "a1" * 50_000 + "'",
    "@Test " * 5_000,
    "if x:\n" + " if x:\n" * 300,
    "x = " + "a + " * 20_000 + "a",
    "if a:\n b\n" + "elif a:\n b\n" * 4_000,
    "@a" + ".b" * 4_000 + "\ndef test_x():\n f()",
    "class A(" + "-" * 3_000 + "a):\n def f(self): ...",
]


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
@pytest.mark.parametrize(
    "path", ["test_a.py", "a.test.js", "a_test.go", "ATest.java", "a.rs", "a.py"]
)
def test_hostile_texts_are_read_to_their_end(path: str, text: str) -> None:
    find(path, text)
    find_diff_issues({path: [(1, text)]}, {})
    assert find_diff_issues({path: [(0, "x"), (-5, "x"), (10**9, "x")]}, {path: "x"}) == ()


PIECES = (
    "def |test_a|(|)|{|}|:|\n|    |assert |# TODO: x|//|/*|*/|'|\"|`|catch|it(|x = 1|pass|except|\\"
    "|<<<<<<< |é|@Test"
)


@given(
    st.sampled_from(
        ["a.py", "test_a.py", "a.test.ts", "a_test.go", "ATest.java", "a.rs", "a.yaml"]
    ),
    st.lists(st.sampled_from(PIECES.split("|")), max_size=40).map("".join),
)
def test_laws(path: str, text: str) -> None:
    lines = list(enumerate(text.split("\n"), 1))
    new = lines[::2]
    found = find_diff_issues({path: new}, {path: text})
    assert {found.line for found in found} <= {number for number, _ in new}
    assert found == find_diff_issues({path: list(reversed(new))}, {path: text})
    assert list(found) == sorted(set(found))
    assert set(found) <= set(find_diff_issues({path: lines}, {path: text})) | {
        found for found in found if found.kind == "commented_code"
    }
