"""Tell from a path what a file is: source, test, document, vendored; and how its comments look.

Tables of the naming habits of many languages. In doubt a file is source, and a line is code: both
are looked at closely.
"""

import re
from typing import Literal

FileKind = Literal["source", "test", "document", "vendored", "fixture", "generated"]

_VENDORED_NAMES = """
vendor vendored third_party thirdparty third-party node_modules bower_components site-packages dist
.yarn _vendor pods
"""
_FIXTURE_NAMES = """
fixtures fixture testdata test-data test_data golden goldens snapshots __snapshots__ cassettes
corpus
"""
_TEST_FOLDER_NAMES = """
test tests testing __tests__ spec specs e2e integration-tests integration_tests testdata test-data
androidtest
"""
_HASH_ENDINGS = """
py pyx rb sh bash zsh yaml yml toml cfg conf properties pl pm r jl ex exs tf mk robot feature ps1
dockerfile makefile gitignore
"""
_SLASH_ENDINGS = """
java kt kts scala groovy gradle cs go rs c h cc cpp cxx hh hpp hxx m mm swift js mjs cjs jsx ts mts
cts tsx php dart proto scss
"""
_INDENT_ENDINGS = "py pyx yaml yml mk makefile pug sass nim fs hs coffee haml"
_VENDORED = frozenset(_VENDORED_NAMES.split())
_FIXTURE = frozenset(_FIXTURE_NAMES.split())
_TEST_FOLDERS = frozenset(_TEST_FOLDER_NAMES.split())
_HASH_COMMENTS = frozenset(_HASH_ENDINGS.split())
_SLASH_COMMENTS = frozenset(_SLASH_ENDINGS.split())
_INDENT_MATTERS = frozenset(_INDENT_ENDINGS.split())
_TEST_NAME = re.compile(
    r"test_.+\.\w+|tests?\.\w+|.+_tests?\.\w+|.+[._-](?:spec|test|cy|e2e)\.\w+|.*\wTests?\.\w+"
    r"|Test[A-Z]\w*\.\w+|.*[a-z0-9](?:TestCase|Spec|IT)\.\w+|conftest\.py|.+\.(?:robot|feature)"
)
_PROSE = re.compile(
    r"(?i).+\.(?:md|rst|adoc|asciidoc|markdown)|"
    r"(?:readme|licen[cs]e|notice|authors|contributors|changelog|changes|copying)(?:\.txt)?|codeowners"
)
_DOCUMENT = re.compile(
    r"(?i).+\.(?:md|mdx|rst|adoc|asciidoc|markdown|txt|svg|html?|po|pot)|"
    r"(?:readme|licen[cs]e|notice|authors|contributors|changelog|changes|copying)"
)
_GENERATED = re.compile(
    r"(?:package-lock|composer)\.(?:json|lock)|.+\.lock|.+\.min\.(?:js|css)|.+\.map|go\.sum|"
    r".+_pb2(?:_grpc)?\.pyi?|.+\.pb\.go|.+\.g\.dart|.+\.snap|.+_generated\.\w+|.+\.gen\.\w+"
)
_DIRECTIVES = ("#!", "//go:", "// +build", "//export")
_DOCSTRING = re.compile(r'[rRuU]?("""|\'\'\')(?:(?!\1).)*\1')
_STAR_PROSE = re.compile(r"\*(?:/|$|\*|\s+[@{<]|\s+[A-Za-z][\w'-]*,?\s+[A-Za-z])")
_SUFFIX = {
    "python": "py pyi",
    "javascript": "js mjs cjs jsx ts mts cts tsx vue svelte",
    "go": "go",
    "java": "java kt kts groovy scala",
    "rust": "rs",
    "ruby": "rb rake",
    "php": "php",
    "csharp": "cs",
    "c": "c h cc cpp cxx hh hpp",
    "swift": "swift",
    "shell": "sh bash zsh",
    "data": "yaml yml toml json ini cfg conf env properties xml",
}
_LANGUAGE = {suffix: name for name, all_ in _SUFFIX.items() for suffix in all_.split()}
_BY_NAME = {".env": "data", "dockerfile": "shell", "makefile": "shell", ".envrc": "shell"}


def find_kind(path: str) -> FileKind:
    *folders, name = path.split("/")
    lower = {folder.lower() for folder in folders}
    if lower & _VENDORED:
        return "vendored"
    if _GENERATED.fullmatch(name):
        return "generated"
    if lower & _FIXTURE:
        return "fixture"
    if _DOCUMENT.fullmatch(name):
        return "document"
    return "test" if is_test(path) else "source"


def is_test(path: str) -> bool:
    """Return True if a file belongs to the tests, by its name or by a folder above it."""
    *folders, name = path.split("/")
    if _TEST_NAME.fullmatch(name):
        return True
    return any(folder.lower() in _TEST_FOLDERS for folder in folders)


def has_tests(path: str) -> bool:
    """Return True if the file's name says that it contains tests."""
    name = path.rpartition("/")[2]
    return name != "conftest.py" and bool(_TEST_NAME.fullmatch(name)) and find_language(path) != ""


def find_language(path: str) -> str:
    """Return the family of languages a file belongs to; empty if it is unknown."""
    name = path.rpartition("/")[2].lower()
    return _BY_NAME.get(name) or _LANGUAGE.get(name.rpartition(".")[2], "")


def is_document(path: str) -> bool:
    """Return True if a file is written for people. In doubt it is not: texts and pictures may be
    data of the program."""
    return bool(_PROSE.fullmatch(path.rpartition("/")[2]))


def is_indent_significant(path: str) -> bool:
    return find_extension(path) in _INDENT_MATTERS


def has_known_comments(path: str) -> bool:
    """Return True if the comment syntax of this kind of file is known."""
    return find_extension(path) in _HASH_COMMENTS or find_extension(path) in _SLASH_COMMENTS


def is_comment(line: str, path: str) -> bool:
    """Return True if a line is nothing but a comment. In doubt it is not."""
    line = line.strip()
    if line.startswith(_DIRECTIVES):
        return False
    if find_extension(path) in _HASH_COMMENTS:
        return line.startswith("#") or bool(_DOCSTRING.fullmatch(line))
    if find_extension(path) in _SLASH_COMMENTS:
        if line.startswith("/*"):
            # Code may follow the end of the comment.
            return line.find("*/", 2) in (-1, len(line) - 2)
        return line.startswith("//") or bool(_STAR_PROSE.match(line))
    return False


def find_extension(path: str) -> str:
    """Return the file's extension, or its whole name if it has none."""
    return path.rpartition("/")[2].lower().rpartition(".")[2]
