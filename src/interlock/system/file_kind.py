"""What a path says about a file: a test, a document, somebody else's, data for tests.

Tables of naming habits. Pure; opens nothing. In doubt a file is source, and looked at closely.
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
_TEST_NAMES = "test tests __tests__ spec specs e2e androidtest integration-tests"
_VENDORED = frozenset(_VENDORED_NAMES.split())
_FIXTURE = frozenset(_FIXTURE_NAMES.split())
_TESTS = frozenset(_TEST_NAMES.split())
_TEST_NAME = re.compile(
    r"test_.+\.\w+|tests?\.\w+|.+_tests?\.\w+|.+[._-](?:spec|test|cy|e2e)\.\w+|.*\wTests?\.\w+"
    r"|Test[A-Z]\w*\.\w+|.*[a-z0-9](?:TestCase|Spec|IT)\.\w+|conftest\.py|.+\.feature"
)
_DOCUMENT = re.compile(
    r"(?i).+\.(?:md|mdx|rst|adoc|asciidoc|markdown|txt|svg|html?|po|pot)|"
    r"(?:readme|licen[cs]e|notice|authors|contributors|changelog|changes|copying)"
)
_GENERATED = re.compile(
    r"(?:package-lock|composer)\.(?:json|lock)|.+\.lock|.+\.min\.(?:js|css)|.+\.map|go\.sum|"
    r".+_pb2(?:_grpc)?\.pyi?|.+\.pb\.go|.+\.g\.dart|.+\.snap|.+_generated\.\w+|.+\.gen\.\w+"
)
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


def kind_of(path: str) -> FileKind:
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
    """Whether it belongs to the tests, by its name or a folder it lies in."""
    *folders, name = path.split("/")
    return bool(_TEST_NAME.fullmatch(name)) or any(each.lower() in _TESTS for each in folders)


def holds_tests(path: str) -> bool:
    """Whether there are tests in the file itself, as far as its name tells."""
    name = path.rpartition("/")[2]
    return name != "conftest.py" and bool(_TEST_NAME.fullmatch(name)) and language_of(path) != ""


def language_of(path: str) -> str:
    """One of a few families of languages; empty if unknown."""
    name = path.rpartition("/")[2].lower()
    return _BY_NAME.get(name) or _LANGUAGE.get(name.rpartition(".")[2], "")
