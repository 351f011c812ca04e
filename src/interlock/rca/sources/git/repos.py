"""The repositories a user names: by flag, in interlock.toml, or in a workspace file.

Knows the written forms and refuses what is doubtful in a sentence. Opens no repository.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from interlock.rca.launch import Repo
from interlock.system.errors import CircuitError, SourceError
from interlock.system.yaml_text import read_yaml

MOST_REPOS = 200
_MOST_BYTES = 1_000_000
_MOST_TEXT = 2_000
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,99}")
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://.*|[\w.-]+@[\w.-]+\.[\w.-]+:.*")
_KEYS = ("name", "path", "purpose", "branch", "url")
_FORM = "NAME=PATH or NAME=PATH:PURPOSE, or the path of a folder that is there"
_UNFIT = re.compile(r"[^A-Za-z0-9_.+-]+")


def parse_repo(word: str) -> Repo:
    """`NAME=PATH[:PURPOSE]`, as after --repo; a folder alone is called as it is."""
    name, equals, rest = word.partition("=")
    if not equals and (called := _folder_name(word.strip())):
        name, equals, rest = called, "=", word
    if not equals or not rest.strip():
        raise SourceError(f"--repo {word[:200]!r} is not understood; write {_FORM}")
    if _ADDRESS.fullmatch(rest.strip()):
        raise SourceError(
            f"--repo {name}: {rest[:200]} is an address; clone it, and give the folder"
        )
    path, _, purpose = rest.partition(":")
    table = {"name": name.strip(), "path": path.strip(), "purpose": purpose.strip()}
    return _repo(table, "--repo", Path())


def _folder_name(word: str) -> str:
    """A name for the folder at a path; "" if there is none."""
    path = word.partition(":")[0].strip()
    try:
        folder = _at_home(path).resolve(strict=True) if path else None
    except (OSError, ValueError, RuntimeError):
        return ""
    if folder is None or not folder.is_dir():
        return ""
    return _UNFIT.sub("-", folder.name).strip("-.+")[:100] or "repo"


def repos_of(
    tables: Sequence[Any], origin: str = "interlock.toml", folder: Path | None = None
) -> tuple[Repo, ...]:
    """The repositories of `[[repo]]` tables; a relative path counts from `folder`."""
    if isinstance(tables, str | bytes | Mapping) or not isinstance(tables, Sequence):
        raise SourceError(f"{origin}: repositories are a list, one table each with name and path")
    if len(tables) > MOST_REPOS:
        raise SourceError(
            f"{origin}: {len(tables):,} repositories are too many; {MOST_REPOS} at most"
        )
    found = [
        _repo(table, f"{origin}, repository {number}", folder or Path())
        for number, table in enumerate(tables, start=1)
    ]
    return unite(found, origin)


def unite(repos: Sequence[Repo], origin: str) -> tuple[Repo, ...]:
    """All of them, in their order, if no two have one name; letters' case does not tell apart."""
    seen: dict[str, Repo] = {}
    for repo in repos:
        other = seen.setdefault(repo.name.lower(), repo)
        if other is not repo:
            raise SourceError(
                f"{origin}: two repositories are named {repo.name} ({other.path or other.url} and "
                f"{repo.path or repo.url}); give each its own name"
            )
    return tuple(repos)


def read_workspace(path: Path) -> tuple[Repo, ...]:
    """The `repos` of a workspace file, YAML or JSON; relative paths count from its folder."""
    value = _value(path)
    if not isinstance(value, dict) or "repos" not in value:
        raise SourceError(
            f"{path}: a workspace has a list `repos`, each with name, path and purpose"
        )
    return repos_of(value["repos"] or [], str(path), path.parent)


def _value(path: Path) -> Any:
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise SourceError(f"{path} cannot be read: {error.strerror}") from None
    except ValueError:
        raise SourceError("a path cannot hold NUL characters") from None
    if len(content) > _MOST_BYTES:
        raise SourceError(f"{path} has more than the {_MOST_BYTES:,} bytes that are read")
    try:
        text = content.decode("utf-8-sig")
        if text.lstrip().startswith("{"):
            return msgspec.json.decode(text)
        return read_yaml(text, str(path)).value
    except UnicodeDecodeError as error:
        raise SourceError(f"{path} is not UTF-8 text (byte {error.start})") from None
    except CircuitError as error:
        raise SourceError(str(error)) from None
    except (msgspec.DecodeError, RecursionError) as error:
        raise SourceError(f"{path} is not readable as JSON: {error}") from None


def _repo(table: Any, origin: str, folder: Path) -> Repo:
    if not isinstance(table, Mapping):
        raise SourceError(f"{origin}: it is no table with name and path")
    for key, value in table.items():
        if key not in _KEYS:
            known = ", ".join(_KEYS)
            raise SourceError(f"{origin}: {str(key)[:100]!r} is not known; known are: {known}")
        if value is not None and not isinstance(value, str):
            raise SourceError(f"{origin}: {key} must be text, not {str(value)[:100]!r}")
        if len(value or "") > _MOST_TEXT or not (value or "").isprintable():
            raise SourceError(f"{origin}: {key} must be one short line of text")
    texts = {key: (table.get(key) or "").strip() for key in _KEYS}
    if not texts["name"]:
        raise SourceError(f"{origin}: it has no name; evidence is written NAME:path:line")
    if not _NAME.fullmatch(texts["name"]):
        raise SourceError(
            f"{origin}: the name {texts['name'][:100]!r} must be letters, digits and . _ + - only"
        )
    if not texts["path"] and not texts["url"]:
        raise SourceError(f"{origin}: {texts['name']} has no path; give the folder of its clone")
    if texts["path"]:
        texts["path"] = str(folder / _at_home(texts["path"]))
    return Repo(**texts)


def _at_home(path: str) -> Path:
    try:
        return Path(path).expanduser()
    except RuntimeError:  # ~somebody, who has no home here
        return Path(path)
