"""Whose code a frame is: the product's, its tests', or a library's that everybody uses.

Knows where ecosystems put what they did not write, and how tests are named. Refuses to know any
one product: what a failing test's own package contains is own code, whatever the tables say.
"""

import re
from collections.abc import Iterable

from interlock.rca.analyst.frames import Frame

LIBRARY_SCOPES = (
    *("java.", "javax.", "jdk.", "sun.", "com.sun.", "jakarta.", "kotlin.", "kotlinx.", "scala."),
    *("groovy.", "org.codehaus.groovy.", "org.apache.groovy.", "clojure.", "android.", "androidx."),
    *("junit.", "org.junit.", "org.testng.", "org.hamcrest.", "org.assertj.", "org.mockito."),
    *("org.easymock.", "org.powermock.", "org.spockframework.", "org.scalatest.", "io.kotest."),
    *("org.apache.tools.ant.", "org.apache.maven.", "org.gradle.", "worker.org.gradle.", "sbt."),
    *("com.intellij.rt.", "org.eclipse.jdt.internal.", "org.jacoco.", "net.bytebuddy."),
    *("System.", "Microsoft.", "NUnit.", "Xunit.", "Moq.", "FluentAssertions."),
    *("std.", "core.", "alloc.", "runtime.", "testing.", "reflect.", "testing/", "net/http."),
    *("github.com/stretchr/testify/",),
)
"""Packages of the languages themselves, of test frameworks, and of build tools."""

_LIBRARY_FILE = re.compile(
    r"(?:^|/)(?:site-packages|dist-packages|node_modules|bower_components|vendor|third_party)/"
    r"|(?:^|/)lib(?:64)?/python\d|(?:^|/)python\d\.\d+/|/gems/|/rubygems/|/ruby/\d|\.cargo/registry/"
    r"|^/rustc/|/go/pkg/mod/|/usr/local/go/src/|^/usr/(?:lib|include|share)/|^node:|^internal/"
    r"|^<(?:frozen|string|anonymous|stdin)|\.m2/repository/|(?:^|/)_pytest/|(?:^|/)unittest/(?:case|mock)"
)
_TEST_SCOPE = re.compile(
    r"(?:^|[._$/])(?:Abstract|Base)?(?:Test|IT|Spec)(?:[A-Z_]\w*)?(?:$|[.$_])"
    r"|\w(?:Test|Tests|TestCase|TestBase|ITCase|IT|Spec|Specs|Suite|Steps|StepDefs)(?:$|[.$])"
    r"|(?:^|[.$/])(?:tests?|specs?|testing|e2e|fixtures?|conftest|mocks?)(?:$|[.$/])"
)
_TEST_FILE = re.compile(
    r"(?:^|/)(?:tests?|specs?|__tests__|testing|e2e|fixtures?|features|cypress|integration)/"
    r"|(?:^|/)(?:test_|conftest|Test)[^/]*$|[_.-](?:test|tests|spec|e2e|cy)\.[a-z]+$"
    r"|(?:Test|Tests|Spec|TestCase)\.\w+$"
)


def owner(frame: Frame, class_name: str = "") -> str:
    """`product`, `test` or `library`, in the eyes of a failing test of that class."""
    if is_library(frame, class_name):
        return "library"
    return "test" if is_test(frame) else "product"


def is_library(frame: Frame, class_name: str = "") -> bool:
    """The makers of a library test it too: what their test's class is named after is theirs."""
    if _LIBRARY_FILE.search(frame.file):
        return True
    scope = f"{frame.scope}."
    if not scope.startswith(LIBRARY_SCOPES):
        return False
    listed = next(each for each in LIBRARY_SCOPES if scope.startswith(each))
    return not class_name.startswith(listed.rstrip("./"))


def is_test(frame: Frame) -> bool:
    return bool(_TEST_SCOPE.search(frame.scope) or _TEST_FILE.search(frame.file))


def looks_tested(name: str) -> bool:
    """Whether a class or path is a test's by its name."""
    return bool(_TEST_FILE.search(name) if "/" in name else _TEST_SCOPE.search(name))


def own_frames(frames: Iterable[Frame], class_name: str = "") -> tuple[Frame, ...]:
    """The frames that are the product's or its tests', in their order."""
    return tuple(frame for frame in frames if not is_library(frame, class_name))


def product_frames(frames: Iterable[Frame], class_name: str = "") -> tuple[Frame, ...]:
    """The frames that are neither a library's nor a test's."""
    return tuple(frame for frame in frames if owner(frame, class_name) == "product")
