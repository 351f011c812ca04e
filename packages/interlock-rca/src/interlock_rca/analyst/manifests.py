"""Changed dependencies and settings of the build, and whether a failure speaks of one.

Reads what manifests, lock files, images and CI files name on the lines that a commit changed: names
with versions. A failure speaks of a dependency by the module it misses, by frames inside it, or by
its name.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

import msgspec

from interlock_rca.analyst.stack import Frame
from interlock_rca.sources.git.change import Hunk

_MANIFEST = re.compile(
    r"(?:^|/)(?:(?:[\w.-]*requirements|constraints)[\w.-]*\.(?:txt|in)|requirements/[\w.-]+\.(?:txt|in)"
    r"|setup\.(?:py|cfg)|pyproject\.toml|Pipfile(?:\.lock)?|poetry\.lock|uv\.lock|environment\.ya?ml|tox\.ini"
    r"|package(?:-lock)?\.json|npm-shrinkwrap\.json|yarn\.lock|pnpm-lock\.yaml|bower\.json"
    r"|pom\.xml|[\w.-]*\.gradle(?:\.kts)?|gradle\.properties|libs\.versions\.toml|build\.sbt|ivy\.xml"
    r"|go\.(?:mod|sum|work)|Cargo\.(?:toml|lock)|Gemfile(?:\.lock)?|[\w.-]+\.gemspec|composer\.(?:json|lock)"
    r"|[\w.-]+\.(?:cs|fs|vb)proj|packages\.config|Directory\.(?:Packages|Build)\.props|conanfile\.\w+"
    r"|vcpkg\.json|mix\.(?:exs|lock)|pubspec\.(?:yaml|lock)|Podfile(?:\.lock)?|Package\.(?:swift|resolved))$"
)
_SETTING = re.compile(
    r"(?:^|/)(?:Dockerfile[\w.-]*|[\w.-]*\.dockerfile|Containerfile|docker-compose[\w.-]*\.ya?ml"
    r"|compose\.ya?ml|\.gitlab-ci\.ya?ml|\.travis\.yml|Jenkinsfile|azure-pipelines[\w.-]*\.ya?ml"
    r"|appveyor\.yml|\.python-version|\.nvmrc|\.node-version|\.ruby-version|\.tool-versions|runtime\.txt"
    r"|\.babelrc[\w.]*|babel\.config\.\w+|tsconfig[\w.-]*\.json|jest\.config\.\w+|\.mocharc[\w.]*"
    r"|vitest\.config\.\w+|pytest\.ini|conftest\.py|Makefile|CMakeLists\.txt)$"
    r"|(?:^|/)\.(?:github/workflows|circleci|buildkite)/"
)
_VERSION = re.compile(r"(?<![\w.])[v^~>=<! ]*(\d+(?:\.\d+)+(?:[-.]?\w)*|\d+)(?![\w.])")
_NAME = re.compile(r"@?[A-Za-z_][\w.-]*(?:[/:][A-Za-z_@][\w.-]*)*")
_NAMING = re.compile(
    r"<artifactId>([^<]+)|\"node_modules/((?:@[^/\"]+/)?[^\"]+)\"|^\s*name\s*=\s*\"([^\"]+)\""
    r"|^\"?(@?[\w./-]+)@[^:\n]+:\s*$|<PackageReference\s+Include=\"([^\"]+)\""
)
"""Lines above a version that say whose it is."""
_ARTEFACT = re.compile(r"<artifactId>([^<]+)</artifactId>\s*<version>([^<]+)</version>")
"""A name and its version on one line of XML."""
_NO_NAMES = frozenset(
    [
        "version",
        "name",
        "resolved",
        "integrity",
        "from",
        "image",
        "uses",
        "run",
        "with",
        "the",
        "dependency",
        "dependencies",
        "plugin",
        "groupid",
        "artifactid",
        "scope",
        "type",
        "implementation",
        "api",
        "testimplementation",
        "compile",
        "gem",
        "require",
        "ruby",
        "package",
        "specifier",
        "checksum",
        "source",
        "hash",
        "optional",
        "dev",
        "true",
        "false",
        "python",
        "node",
        "https",
        "http",
        "registry",
        "tgz",
        "sha512",
        "sha256",
        "sha1",
        "h1",
        "url",
        "file",
        "extras",
        "marker",
        "python-version",
        "python_version",
    ]
)
_MISSING_MODULE = re.compile(
    r"No module named ['\"]?([\w.]+)|[Cc]annot find (?:module|package) ['\"]([^'\"\n]+)['\"]"
    r"|package ([\w.]+) does not exist|no required module provides package ([\w./-]+)"
    r"|cannot find package \"?([\w./-]+)|cannot load such file -- ([\w./-]+)"
    r"|(?:ClassNotFoundException|NoClassDefFoundError):? ([\w./$]+)"
    r"|unresolved import `([\w:]+)|can't find crate for `(\w+)|fatal error: ([\w./-]+)"
    r"|NoSuch(?:Method|Field)Error:?[^\n]*?([a-z]\w*(?:[./]\w+){2,})"
    r"|Module not found: [^'\"\n]*['\"]([^'\"\n]+)['\"]|DistributionNotFound[^\n]*'([\w.-]+)"
    r"|namespace name '([\w.]+)' could not be found|cannot import name '\w+' from '([\w.]+)'"
)
_LIBRARY_PATH = re.compile(
    r"(?:site-packages|dist-packages|node_modules|vendor/bundle|gems|registry/src/[^/]+|third_party)/"
    r"((?:@[^/]+/)?[^/]+)"
)
_GO_MODULE = re.compile(r"/pkg/mod/([^@]+)@")
_RUNTIME = re.compile(
    r"/(python\d\.\d+)/|\b(Python \d\.\d+)|\bnode(?:\.js)? v?(\d+\.\d+)|\bgo(1\.\d+)\b|\bJava (\d+)"
)
_LONGEST = 400
_MOST_LINES = 2_000
_ABOVE = 8


class DependencyChange(msgspec.Struct, frozen=True):
    """A name whose version a commit changed; without `new` it was taken away."""

    path: str
    name: str
    old: str = ""
    new: str = ""

    @property
    def sentence(self) -> str:
        if self.old and self.new:
            return f"it changed {self.name} from {self.old} to {self.new} in {self.path}"
        if self.new:
            return f"it added {self.name} {self.new} in {self.path}"
        return f"it took {self.name} out of {self.path}"


def is_manifest(path: str) -> bool:
    """Whether a file lists what a project depends on."""
    return bool(_MANIFEST.search(path))


def is_build_setting(path: str) -> bool:
    """Whether a file says where and how a project is built and tested."""
    return bool(_SETTING.search(path))


def read_dependency_changes(
    hunks: Iterable[Hunk], sources: Mapping[str, str]
) -> list[DependencyChange]:
    """What the hunks changed in manifests and images. `sources` are the files as the commit left
    them: a version often stands on a line of its own, below the name it is of."""
    removed: dict[tuple[str, str], str] = {}
    added: dict[tuple[str, str], str] = {}
    for hunk in hunks:
        if not is_manifest(hunk.path) and not is_build_setting(hunk.path):
            continue
        above = _find_name_above(sources.get(hunk.path, ""), hunk.first)
        for lines, into in ((hunk.removed, removed), (hunk.added, added)):
            owner = above
            for line in lines[:_MOST_LINES]:
                naming = _NAMING.search(line[:_LONGEST])
                owner = next(filter(None, naming.groups())) if naming else owner
                for name, version in _read_names(line[:_LONGEST], owner):
                    into.setdefault((hunk.path, name), version)
    names = dict.fromkeys([*removed, *added])
    return [
        DependencyChange(path, name, removed.get((path, name), ""), added.get((path, name), ""))
        for path, name in names
        if removed.get((path, name)) != added.get((path, name))
    ]


def _find_name_above(source: str, line: int) -> str:
    rows = source.split("\n")[max(0, line - _ABOVE) : max(0, line)]
    for row in reversed(rows):
        if found := _NAMING.search(row[:_LONGEST]):
            return str(next(filter(None, found.groups())))
    return ""


def _read_names(line: str, owner: str) -> Iterator[tuple[str, str]]:
    plain = line.strip()
    if not plain or plain.startswith(("#", "//", "<!--")):
        return
    version = next((found[1] for found in _VERSION.finditer(plain)), "")
    names = [
        name
        for name in _NAME.findall(plain)
        if name.lower() not in _NO_NAMES and len(name) > 1 and not _VERSION.fullmatch(name)
    ]
    if ":" in plain and names and names[0].count(":") >= 1:  # group:artifact
        names = [names[0]]
    tag = re.match(r"</?([\w.-]+?)\.version>", plain)
    if artefacts := _ARTEFACT.findall(plain):
        yield from artefacts
    elif tag:
        yield tag[1], version
    elif plain.startswith("<version") or re.match(r"\"?version\"?\s*[:=]", plain):
        if owner:
            yield owner, version
    elif names:
        yield names[0], version or "any version"


def normalize_dependency(name: str) -> frozenset[str]:
    """The names under which a dependency may be met: its last parts, without a language's mark."""
    parts = [
        part
        for part in re.split(r"[/:@]", name.lower())
        if part and not re.fullmatch(r"v?\d+", part)
    ]
    found: set[str] = set()
    for part in parts[-2:] if len(parts) > 1 and "." not in parts[0] else parts[-1:]:
        flat = re.sub(r"[^a-z0-9]", "", part)
        found.add(flat)
        found.add(re.sub(r"^(?:python|py|node|go|ruby|lib)|(?:python|py|js|go|rb|lib)$", "", flat))
    return frozenset(each for each in found if len(each) > 2)


class DependencyMentions(msgspec.Struct, frozen=True):
    """What a failure says of dependencies, in normalized names."""

    missing: frozenset[str] = frozenset()
    modules: tuple[str, ...] = ()
    """Missing modules as the failure names them."""
    frames: frozenset[str] = frozenset()
    words: frozenset[str] = frozenset()
    runtimes: frozenset[str] = frozenset()


def collect_dependency_mentions(
    texts: Sequence[str], frames: Iterable[Frame], words: Collection[str]
) -> DependencyMentions:
    text = "\n".join(texts)
    missed = [next(filter(None, found.groups())) for found in _MISSING_MODULE.finditer(text)]
    inside = {
        found[1]
        for frame in frames
        for pattern in (_LIBRARY_PATH, _GO_MODULE)
        if (found := pattern.search(frame.file))
    }
    scopes = {frame.scope for frame in frames if frame.scope.count(".") > 1}
    runtimes = {next(filter(None, found.groups())) for found in _RUNTIME.finditer(text)}
    return DependencyMentions(
        # A file of our own that is missing is no dependency.
        missing=frozenset(
            each for name in missed if name[0] not in "./" for each in _split_module(name)
        ),
        modules=tuple(dict.fromkeys(missed))[:10],
        frames=frozenset(each for name in (*inside, *scopes) for each in _split_module(name)),
        words=frozenset(re.sub(r"[^a-z0-9]", "", word.lower()) for word in words if len(word) > 3),
        runtimes=frozenset(re.sub(r"[^\d.]", "", each) for each in runtimes),
    )


def _split_module(name: str) -> set[str]:
    parts = [part for part in re.split(r"[./:@$\\]+", name.lower()) if len(part) > 2]
    found = {re.sub(r"[^a-z0-9]", "", part) for part in parts}
    return {
        each for each in found if each not in ("org", "com", "github", "www", "net", "src", "lib")
    }


def match_dependency(
    change: DependencyChange, mentions: DependencyMentions, is_own: Callable[[str], bool]
) -> tuple[float, str] | None:
    """How strongly a failure points at a changed dependency, and in which words. A name that
    `is_own` is met wherever the project's own code is: it must be missing, or in the stack."""
    names = normalize_dependency(change.name)
    if names & mentions.missing:
        return 1.0, f"{change.sentence}, and that is what is missing"
    if names & mentions.frames:
        return 0.8, f"{change.sentence}, and the stack leads through it"
    if is_build_setting(change.path) and mentions.runtimes and change.new:
        version = re.sub(r"[^\d.]", "", change.new)
        if version and any(
            each == version or version.startswith(f"{each}.") for each in mentions.runtimes
        ):
            return 0.6, f"{change.sentence}, which the failure ran on"
    last = re.split(r"[/:]", change.name.lower())[-1]
    if re.sub(r"[^a-z0-9]", "", last) in mentions.words and not is_own(last):
        return 0.5, f"{change.sentence}, which the failure names"
    return None
