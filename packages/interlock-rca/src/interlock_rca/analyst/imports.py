"""Which files of a repository a file uses, by itself or some steps away, by its import statements.

A static graph of one revision, made as far as it is asked for, and kept in the project's cache.
Languages without file-wise imports (Java, C#, Go within a package) are linked by the names of types
and functions that a file uses and another one is called after or defines. Nothing is run.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from posixpath import dirname, join, normpath

import msgspec

from interlock_rca.analyst.definitions import list_identifiers
from interlock_rca.analyst.names import detect_language
from interlock_rca.analyst.stack import is_test_name
from interlock_rca.sources.git.repository import Repository

_PYTHON = re.compile(
    r"^[ \t]*(?:from[ \t]+(?P<base>\.*[\w.]*)[ \t]+import[ \t]+(?P<names>\([^)]*\)|[^\n#]+)"
    r"|import[ \t]+(?P<modules>[\w., \t]+))",
    re.MULTILINE,
)
_SCRIPT = re.compile(
    r"(?:\brequire\(\s*|\bimport\(\s*|\bfrom\s+|^\s*import\s+|\bmock\(\s*)['\"]([^'\"\n]+)['\"]",
    re.MULTILINE,
)
_RUBY = re.compile(r"^\s*require(_relative)?[ (]+['\"]([^'\"\n]+)['\"]", re.MULTILINE)
_RUST = re.compile(r"\b(?:use|mod|pub mod)\s+([\w:]+)")
_INCLUDE = re.compile(r"^\s*#\s*(?:include|import)\s+[\"<]([^\">\n]+)[\">]", re.MULTILINE)
_GO = re.compile(r"^\s*(?:import\s+)?(?:[\w.]+\s+)?\"([\w./-]+)\"\s*$", re.MULTILINE)
_SCRIPT_ENDINGS = (
    "",
    ".js",
    ".ts",
    ".mjs",
    ".cjs",
    ".tsx",
    ".jsx",
    ".mts",
    ".cts",
    ".json",
    ".vue",
)
_SCRIPT_INDEXES = tuple(f"/index{ending}" for ending in _SCRIPT_ENDINGS[1:])
_BY_TYPE_NAMES = ("jvm", "dotnet", "swift", "php", "dart")
"""Languages in which a file is called after the type it holds."""
MAX_READ = 400
"""So many files are read for one failure, at most."""
_FOLDERS_OWN = ("index", "__init__", "mod")
MAX_STEPS = 6
_KEPT_AS = "imports 1"
"""How the graph is called in the cache; another number if it is made in another way."""
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(dict[str, tuple[str, ...]]).decode
_MOST_IMPORTS = 200


class ImportGraph:
    """The files of one revision, and which of them each uses."""

    def __init__(self, repository: Repository, rev: str) -> None:
        self._repository = repository
        self._rev = rev
        self._paths = frozenset(repository.list_files(rev).paths) if repository.is_readable else ()
        self._by_name: dict[str, list[str]] = defaultdict(list)
        self._by_folder: dict[str, list[str]] = defaultdict(list)
        for path in self._paths:
            folder, _, name = path.rpartition("/")
            self._by_name[name].append(path)
            self._by_folder[folder].append(path)
        self._by_stem: dict[str, list[str]] = defaultdict(list)
        for name, paths in self._by_name.items():
            stem = name.partition(".")[0].casefold()
            for path in sorted(paths):
                folder = path.rpartition("/")[0].rpartition("/")[2].casefold()
                self._by_stem[folder if stem in _FOLDERS_OWN else stem].append(path)
        self._texts: dict[str, str] = {}
        self._imports = self._load_known()
        self._kept = len(self._imports)

    def find_by_stem(self, stem: str) -> Sequence[str]:
        """The files that are called so, whatever their ending and their case; a file that stands
        for its folder is called like that."""
        return self._by_stem.get(stem, ())

    def find_reach(self, start: Iterable[str], steps: int = MAX_STEPS) -> dict[str, int]:
        """The files that the first ones use, with how many steps that takes."""
        reached = {path: 0 for path in start if path in self._paths}
        latest = list(reached)
        for step in range(1, steps + 1):
            self.read_texts([path for path in latest if path not in self._imports])
            found = [each for path in latest for each in self.list_imports(path)]
            latest = [path for path in dict.fromkeys(found) if path not in reached]
            latest = latest[: max(0, MAX_READ - len(reached))]
            reached.update(dict.fromkeys(latest, step))
        self._save_known()
        return reached

    def _load_known(self) -> dict[str, tuple[str, ...]]:
        """What an earlier analysis found out about the revision."""
        body = self._repository.find_derived(_KEPT_AS, self._rev) if self._paths else None
        try:
            known = _decode(body) if body else {}
        except msgspec.MsgspecError:
            return {}
        return {path: found for path, found in known.items() if path in self._paths}

    def _save_known(self) -> None:
        if len(self._imports) > self._kept:
            self._kept = len(self._imports)
            self._repository.keep_derived(_KEPT_AS, self._rev, _encode(self._imports))

    def read_texts(self, paths: Sequence[str]) -> dict[str, str]:
        """The files' sources; what cannot be read is empty."""
        missing = [path for path in paths if path not in self._texts][:MAX_READ]
        self._texts.update(dict.fromkeys(missing, ""))
        for path, content in self._repository.read_files(missing, self._rev).items():
            self._texts[path] = content.decode("utf-8", "replace")
        return {path: self._texts[path] for path in paths if path in self._texts}

    def list_imports(self, path: str) -> tuple[str, ...]:
        """The files that this one uses by itself."""
        if path not in self._imports:
            text = self.read_texts([path]).get(path, "")
            found = dict.fromkeys(each for each in self._resolve(path, text) if each != path)
            self._imports[path] = tuple(found)[:_MOST_IMPORTS]
        return self._imports[path]

    def _resolve(self, path: str, text: str) -> Iterator[str]:
        language = detect_language(path)
        if language == "py":
            yield from self._resolve_python(path, text)
        elif language == "javascript":
            yield from self._resolve_script(path, text)
        elif language == "go":
            yield from self._resolve_go(path, text)
        elif language == "rb":
            yield from self._resolve_ruby(path, text)
        elif language == "rs":
            yield from self._resolve_rust(path, text)
        elif language == "c":
            yield from self._resolve_includes(text)
        elif language in _BY_TYPE_NAMES:
            yield from self._resolve_types(path, text)

    def _resolve_python(self, path: str, text: str) -> Iterator[str]:
        for found in _PYTHON.finditer(text):
            if found["modules"]:
                for module in found["modules"].split(","):
                    name = module.split(" as ")[0].strip().replace(".", "/")
                    yield from self._find_python(name)
                continue
            base = found["base"]
            names = re.findall(r"(\w+)(?:\s+as\s+\w+)?", found["names"].strip("()"))
            folder = base.lstrip(".").replace(".", "/")
            if base.startswith("."):
                here = dirname(path)
                for _ in range(len(base) - len(base.lstrip(".")) - 1):
                    here = dirname(here)
                folder = join(here, folder) if folder else here
                tries = [f"{folder}/{name}" for name in names] + [folder]
                for each in tries:
                    yield from self._keep(f"{each}.py", f"{each}/__init__.py")
                continue
            for name in names:
                yield from self._find_python(f"{folder}/{name}")
            yield from self._find_python(folder)

    def _find_python(self, module: str) -> Iterator[str]:
        if module:
            yield from self._find_ending(f"{module}.py")
            yield from self._find_ending(f"{module}/__init__.py")

    def _resolve_script(self, path: str, text: str) -> Iterator[str]:
        for word in _SCRIPT.findall(text):
            if not word.startswith("."):
                continue
            at = normpath(join(dirname(path), word))
            at = "" if at == "." else at
            if at:
                yield from self._keep(*(at + ending for ending in _SCRIPT_ENDINGS))
                if at.endswith(".js"):
                    yield from self._keep(f"{at[:-3]}.ts", f"{at[:-3]}.tsx")
            indexes = [f"{at}{ending}".lstrip("/") for ending in _SCRIPT_INDEXES]
            main = self._find_main(at)
            yield from self._keep(*indexes, *main)

    def _find_main(self, folder: str) -> Iterator[str]:
        """What a package says is its entry."""
        manifest = join(folder, "package.json")
        if manifest not in self._paths:
            return
        text = self.read_texts([manifest]).get(manifest, "")
        for word in re.findall(r"\"(?:main|module|source)\"\s*:\s*\"([^\"]+)\"", text):
            at = normpath(join(folder, word))
            yield from (at + ending for ending in (*_SCRIPT_ENDINGS, *_SCRIPT_INDEXES))

    def _resolve_go(self, path: str, text: str) -> Iterator[str]:
        """A package is a folder: its other files, and those of the folders that are imported."""
        own = dirname(path)
        yield from self._list_package(own)
        for word in _GO.findall(text[:20_000]):
            names = word.split("/")
            for start in range(len(names)):
                folder = "/".join(names[start:])
                if folder in self._by_folder and folder != own:
                    yield from self._list_package(folder)
                    break

    def _list_package(self, folder: str) -> Iterator[str]:
        for path in sorted(self._by_folder.get(folder, ())):
            if path.endswith(".go") and not path.endswith("_test.go"):
                yield path

    def _resolve_ruby(self, path: str, text: str) -> Iterator[str]:
        for relative, word in _RUBY.findall(text):
            name = word.removesuffix(".rb")
            if relative:
                yield from self._keep(normpath(join(dirname(path), f"{name}.rb")))
            else:
                yield from self._find_ending(f"{name}.rb")

    def _resolve_rust(self, path: str, text: str) -> Iterator[str]:
        for word in _RUST.findall(text):
            names = [name for name in word.split("::") if name not in ("crate", "self", "super")]
            for end in range(len(names), 0, -1):
                for start in range(end):
                    name = "/".join(names[start:end])
                    found = [*self._find_ending(f"{name}.rs"), *self._find_ending(f"{name}/mod.rs")]
                    yield from found

    def _resolve_includes(self, text: str) -> Iterator[str]:
        for word in _INCLUDE.findall(text):
            name = "/".join(part for part in word.split("/") if part not in ("", ".", ".."))
            stem = name.rpartition(".")[0] or name
            for ending in (
                name,
                f"{stem}.c",
                f"{stem}.cc",
                f"{stem}.cpp",
                f"{stem}.cxx",
                f"{stem}.m",
            ):
                yield from self._find_ending(ending)

    def _resolve_types(self, path: str, text: str) -> Iterator[str]:
        ending = path.rpartition(".")[2]
        names = [name for name in list_identifiers(text) if name[:1].isupper()]
        for name in sorted(names):
            found = self._by_name.get(f"{name}.{ending}", ())
            yield from [each for each in found if not is_test_name(each)] or found

    def _keep(self, *paths: str) -> Iterator[str]:
        return (path for path in paths if path in self._paths)

    def _find_ending(self, ending: str) -> list[str]:
        """The files whose path ends like that; the shortest of them come first."""
        name = ending.rpartition("/")[2]
        found = [
            path
            for path in self._by_name.get(name, ())
            if path == ending or path.endswith(f"/{ending}")
        ]
        return sorted(found, key=lambda path: (path.count("/"), path))[:3]
