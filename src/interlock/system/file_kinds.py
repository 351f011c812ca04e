"""What a file's name says about it: a test, a document, how comments are written in it.

Tables of naming habits of many languages. Pure; opens nothing.
"""

import re

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
_TEST_FOLDERS = frozenset(_TEST_FOLDER_NAMES.split())
_HASH_COMMENTS = frozenset(_HASH_ENDINGS.split())
_SLASH_COMMENTS = frozenset(_SLASH_ENDINGS.split())
_INDENT_MATTERS = frozenset(_INDENT_ENDINGS.split())
_TEST_NAME = re.compile(
    r"test_.+\.\w+|.+_tests?\.\w+|.+[._-](?:spec|test|cy|e2e)\.\w+|.*[a-z0-9]Tests?\.\w+|"
    r"Test[A-Z]\w*\.\w+|.*[a-z0-9](?:TestCase|Spec|IT)\.\w+|conftest\.py|.+\.(?:robot|feature)"
)
_DOCUMENT = re.compile(
    r"(?i).+\.(?:md|rst|adoc|asciidoc|markdown)|"
    r"(?:readme|licen[cs]e|notice|authors|contributors|changelog|changes|copying)(?:\.txt)?|codeowners"
)
_DIRECTIVES = ("#!", "//go:", "// +build", "//export")
_DOCSTRING = re.compile(r'[rRuU]?("""|\'\'\')(?:(?!\1).)*\1')
_STAR_PROSE = re.compile(r"\*(?:/|$|\*|\s+[@{<]|\s+[A-Za-z][\w'-]*,?\s+[A-Za-z])")


def is_test(path: str) -> bool:
    """Whether a file belongs to the tests, by its name or a folder it lies in."""
    *folders, name = path.split("/")
    if _TEST_NAME.fullmatch(name):
        return True
    return any(folder.lower() in _TEST_FOLDERS for folder in folders)


def is_document(path: str) -> bool:
    """Whether a file is there to be read by people. In doubt it is not: texts and pictures may
    be data of the program."""
    return bool(_DOCUMENT.fullmatch(path.rpartition("/")[2]))


def indent_matters(path: str) -> bool:
    return ending(path) in _INDENT_MATTERS


def knows_comments(path: str) -> bool:
    """Whether it is known how this kind of file is written at all."""
    return ending(path) in _HASH_COMMENTS or ending(path) in _SLASH_COMMENTS


def is_comment(line: str, path: str) -> bool:
    """Whether a line is nothing but a comment. In doubt it is not."""
    line = line.strip()
    if line.startswith(_DIRECTIVES):
        return False
    if ending(path) in _HASH_COMMENTS:
        return line.startswith("#") or bool(_DOCSTRING.fullmatch(line))
    if ending(path) in _SLASH_COMMENTS:
        if line.startswith("/*"):
            # Code may follow the end of the comment.
            return line.find("*/", 2) in (-1, len(line) - 2)
        return line.startswith("//") or bool(_STAR_PROSE.match(line))
    return False


def ending(path: str) -> str:
    """The file's extension, or its whole name if it has none."""
    return path.rpartition("/")[2].lower().rpartition(".")[2]
