"""Whether the references of an agent are found where they point, in repositories and in the log.

A path must exist at the tested revision, a line within the file, an identifier in it, a commit in
the history of what was tested, quoted words in the log. Nothing is believed and nothing is run: a
hostile reference is a missing one. Whether the evidence proves anything is for others to judge.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

from interlock.rca.records import Evidence
from interlock.rca.sources.git.content import TreeEntry, inside
from interlock.rca.sources.git.evidence_refs import Pointer, pointers
from interlock.rca.sources.git.repository import Repository

_QUOTES = "\"'`\N{LEFT DOUBLE QUOTATION MARK}\N{RIGHT DOUBLE QUOTATION MARK}"
_QUOTED = re.compile(rf"[{_QUOTES}](.{{3,}}?)[{_QUOTES}]")


class LogLines:
    """A log, by its lines."""

    def __init__(self, text: str) -> None:
        self._lines = text.removesuffix("\n").split("\n") if text else []

    def check(self, pointer: Pointer) -> Evidence:
        """What is true of a reference to the log; its `ref` is left empty."""
        quoted = _QUOTED.match(pointer.words)
        words = " ".join((quoted[1] if quoted else pointer.words).split())
        if not pointer.first:
            return self._somewhere(words, "line {} of the log")
        last = max(pointer.first, pointer.last)
        if not 0 < pointer.first <= last <= len(self._lines):
            return _log_evidence("missing", f"the log has only {len(self._lines):,} lines")
        there = " ".join(" ".join(self._lines[pointer.first - 1 : last]).split())
        if not words or words in there:
            return _log_evidence("found", f"line {pointer.first} of the log")
        if quoted:
            return self._somewhere(words, "it is line {} of the log")
        why = f"line {pointer.first} of the log; what is said of it does not stand there"
        return _log_evidence("found", why)

    def _somewhere(self, words: str, why: str) -> Evidence:
        """The first line that holds these words."""
        for number, line in enumerate(self._lines, start=1):
            if words in " ".join(line.split()):
                return _log_evidence("found", why.format(number))
        return _log_evidence("missing", f"these words are not in the log: {words[:100]}")


def _log_evidence(verdict: str, why: str) -> Evidence:
    return Evidence(ref="", verdict=verdict, why=why)


MOST_REFERENCE = 2_000
_MOST_SHOWN = 300
_NAMES = re.compile(r"[A-Za-z_$][\w$]*")
_HASH = re.compile(r"[0-9a-f]{40,64}")
FOUND, MISSING, UNCHECKED = "found", "missing", "unchecked"
_NO_LOG = "no log was given to look in"
_RANK = {FOUND: 0, UNCHECKED: 1, MISSING: 2}


def check_evidence(
    refs: Sequence[str],
    repos: Mapping[str, Repository],
    tested: str | Mapping[str, str] = "",
    log: str | None = None,
) -> list[Evidence]:
    """What is true of each reference, in their order. `tested` is the branch or commit that was
    tested, of all repositories or of each by name; where one does not know it, its own tip counts.
    """
    checker = _Checker(repos, tested, log)
    return [checker.check(ref) for ref in refs]


class _Checker:
    def __init__(
        self,
        repos: Mapping[str, Repository],
        tested: str | Mapping[str, str],
        log: str | None,
    ) -> None:
        self._repos = {name: repos[name] for name in sorted(repos)}
        self._tested = dict.fromkeys(repos, tested) if isinstance(tested, str) else tested
        self._log = None if log is None else LogLines(log)

    def check(self, ref: str) -> Evidence:
        text = " ".join(ref[: MOST_REFERENCE + 1].split())
        shown = _shown(ref)
        if len(ref) > MOST_REFERENCE:
            why = f"{len(ref):,} characters are too many for a reference"
            return Evidence(ref=shown, verdict=MISSING, why=why)
        if not text.isprintable():
            return Evidence(ref=shown, verdict=MISSING, why="it holds characters no path has")
        last: Evidence | None = None
        for alternatives in pointers(text, self._repos):
            if not alternatives:
                continue
            known = [pointer for pointer in alternatives if self._has_revision(pointer)]
            found = self._best(known or alternatives[:1], shown)
            if found.verdict == FOUND or any(pointer.sure for pointer in alternatives):
                return found
            last = last or found
        return last or Evidence(ref=shown, why="it names no file, no commit and no line of the log")

    def _revision(self, repository: Repository) -> str:
        return self._tested.get(repository.name, "")

    def _has_revision(self, pointer: Pointer) -> bool:
        if not pointer.place or not pointer.rev:
            return True
        return any(one.resolve(pointer.rev) for one in self._chosen(pointer))

    def _best(self, alternatives: Sequence[Pointer], shown: str) -> Evidence:
        """The best that can be said of one reading; of equals, the first."""
        verdicts = [verdict for pointer in alternatives for verdict in self._verdicts(pointer)]
        found = [one for one in verdicts if one.verdict == FOUND]
        first = (found or sorted(verdicts, key=lambda one: _RANK[one.verdict]))[0]
        missing = [one.why for one in verdicts if one.verdict == MISSING]
        if first.verdict == MISSING and len(missing) > 1:
            first = Evidence(ref="", verdict=MISSING, why="; ".join(dict.fromkeys(missing))[:1_000])
        return Evidence(ref=shown, verdict=first.verdict, why=first.why, url=first.url)

    def _verdicts(self, pointer: Pointer) -> Iterator[Evidence]:
        if pointer.kind == "log":
            yield self._log.check(pointer) if self._log else _said(UNCHECKED, _NO_LOG)
            return
        if not self._repos:
            yield _said(UNCHECKED, "no repository is known to look in")
            return
        chosen = self._chosen(pointer)
        if not chosen:
            asked = pointer.repo or pointer.place or "that address"
            known = ", ".join(self._repos)
            yield _said(UNCHECKED, f"no repository {asked} is known; known are: {known}")
        for repository in chosen:
            if not repository.readable:
                why = next((one.sentence for one in repository.problems if one.fatal), "")
                yield _said(UNCHECKED, why or f"repository {repository.name} cannot be read")
            elif pointer.kind == "commit":
                yield self._commit(pointer, repository)
            else:
                yield self._file(pointer, repository)

    def _chosen(self, pointer: Pointer) -> list[Repository]:
        repos = list(self._repos.values())
        if pointer.repo:
            asked = pointer.repo.lower()
            return [one for one in repos if one.name.lower() == asked]
        if pointer.place:
            same = [one for one in repos if one.browse and one.browse.place == pointer.place]
            name = pointer.place.rpartition("/")[2]
            unplaced = [one for one in repos if not one.browse and one.name.lower() == name]
            return same or unplaced
        return [one for one in repos if self._holds(one, pointer)] or repos

    def _holds(self, repository: Repository, pointer: Pointer) -> bool:
        """Whether a repository has the commit or the file at all."""
        if not repository.readable:
            return False
        if pointer.kind == "commit":
            return bool(repository.commit_exists(pointer.rev))
        _, refusal = _Search(repository, repository.at(self._revision(repository))).path(
            pointer.path
        )
        return refusal is None

    def _commit(self, pointer: Pointer, repository: Repository) -> Evidence:
        full = repository.commit_exists(pointer.rev)
        if not full:
            return _unknown(repository, f"commit {pointer.rev[:12]}")
        outside = self._outside(full, repository)
        if outside:
            return outside
        why = f"commit {full[:12]} of {repository.name}, on {self._label(repository)}"
        return _said(FOUND, why, repository.commit_url(full))

    def _outside(self, commit: str, repository: Repository) -> Evidence | None:
        """What is wrong with a commit that exists, if it is not part of what was tested."""
        within = repository.on_branch(commit, repository.at(self._revision(repository)))
        if within:
            return None
        label, name = self._label(repository), repository.name
        if within is None:
            return _said(
                UNCHECKED, f"git cannot tell whether {commit[:12]} of {name} is on {label}"
            )
        return _said(MISSING, f"{commit[:12]} of {name} exists, but not on {label}")

    def _file(self, pointer: Pointer, repository: Repository) -> Evidence:
        rev = repository.at(self._revision(repository))
        if pointer.rev:
            rev = repository.resolve(pointer.rev)
            if not rev:
                return _unknown(repository, f"revision {pointer.rev[:100]}")
            outside = self._outside(rev, repository)
            if outside:
                return outside
        path, refusal = _Search(repository, rev).path(pointer.path)
        if refusal:
            return refusal
        entry = repository.entry(path, rev)
        if entry is None:
            return _said(UNCHECKED, f"{path} of {repository.name} cannot be read")
        fault = _fault(pointer, path, entry)
        if fault:
            return fault
        url = repository.file_url(path, rev, pointer.first, pointer.last)
        return _said(FOUND, f"{_described(pointer, path, entry)} in {repository.name}", url)

    def _label(self, repository: Repository) -> str:
        tested = self._revision(repository)
        label = tested if repository.resolve(tested) else repository.branch
        return label[:12] if _HASH.fullmatch(label) else label


class _Search:
    """Which file of a revision a path means."""

    def __init__(self, repository: Repository, rev: str) -> None:
        self._repository = repository
        self._rev = rev

    def path(self, asked: str) -> tuple[str, Evidence | None]:
        """The path as the repository has it, or why there is none."""
        name, plain = self._repository.name, asked.replace("\\", "/")
        for candidate in (plain, plain.removeprefix(f"{name}/"), self._below_top(plain)):
            exists = self._repository.file_exists(candidate, self._rev)
            if exists is None:
                return "", _said(UNCHECKED, f"{asked[:200]} of {name} cannot be read")
            if exists:
                return inside(candidate), None
        if ".." in plain.split("/"):
            return "", _said(MISSING, f"{asked[:200]} leads out of the repository {name}")
        whole = self._ending_so(plain)
        if len(whole) == 1:
            return whole[0], None
        if whole:
            several = ", ".join(whole[:3])
            return "", _said(MISSING, f"{asked[:200]} may be any of {len(whole)} files: {several}")
        for folder in self._repository.files(self._rev).submodules:
            if plain == folder or plain.startswith(f"{folder}/"):
                return "", _said(UNCHECKED, f"{folder} of {name} is a submodule, which is not read")
        why = f"there is no {asked[:200]} in {name} at {self._rev[:12]}"
        return "", _said(MISSING, why)

    def _ending_so(self, path: str) -> list[str]:
        """The files that end as the path does; an absolute path may be longer than theirs."""
        names = len([part for part in path.split("/") if part not in ("", ".")])
        matches = self._repository.files_named(path, self._rev)
        if not path.startswith("/") and path[1:2] != ":":
            return [one.path for one in matches if one.shared == names]
        return [one.path for one in matches if one.shared == one.path.count("/") + 1 > 1]

    def _below_top(self, path: str) -> str:
        top = self._repository.top
        return path.removeprefix(f"{top}/") if top else path


def _fault(pointer: Pointer, path: str, entry: TreeEntry) -> Evidence | None:
    """What the file does not have of what the reference says."""
    if not pointer.first and not pointer.words:
        return None
    if entry.kind != "blob":
        return _said(MISSING, f"{path} is a folder, and has no lines")
    if entry.content is None:
        return _said(UNCHECKED, f"{path} has {entry.size:,} bytes, too many to look into")
    if pointer.first or pointer.last:
        last = pointer.last or pointer.first
        if not 0 < pointer.first <= last:
            return _said(MISSING, "lines are counted upwards, from 1")
        if last > entry.lines:
            return _said(MISSING, f"{path} has only {entry.lines:,} lines")
    if pointer.words and not _occurs(pointer.words, entry.content):
        return _said(MISSING, f"{pointer.words[:100]} does not occur in {path}")
    return None


def _occurs(words: str, content: bytes) -> bool:
    """Whether a file holds an identifier: as it is written, or all names it is made of."""
    if words.encode() in content:
        return True
    names = _NAMES.findall(words.partition("(")[0] or words)
    if not names or any(map(str.isspace, words.partition("(")[0])):
        return False
    return all(re.search(rb"\b%s\b" % re.escape(name.encode()), content) for name in names)


def _described(pointer: Pointer, path: str, entry: TreeEntry) -> str:
    if pointer.first and pointer.last > pointer.first:
        return f"lines {pointer.first}-{pointer.last} of {path}"
    if pointer.first:
        return f"line {pointer.first} of {path}"
    return f"folder {path}" if entry.kind == "tree" else path


def _unknown(repository: Repository, what: str) -> Evidence:
    if repository.is_shallow:
        why = f"{what} is not in {repository.name}, whose clone is shallow"
        return _said(UNCHECKED, why)
    return _said(MISSING, f"there is no {what} in {repository.name}")


def _said(verdict: str, why: str, url: str = "") -> Evidence:
    return Evidence(ref="", verdict=verdict, why=why, url=url)


def _shown(ref: str) -> str:
    """A reference fit to be kept and shown: whole lines of nonsense are cut."""
    text = ref[: _MOST_SHOWN + 1].encode(errors="replace").decode()
    text = "".join(letter if letter.isprintable() else " " for letter in text)
    return text if len(text) <= _MOST_SHOWN else text[:_MOST_SHOWN] + "…"
