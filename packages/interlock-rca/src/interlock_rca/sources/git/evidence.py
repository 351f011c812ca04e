"""Check an agent's references where they point, in repositories and in the log.

A path must exist at the tested revision, a line within the file, an identifier in it, a commit in
the tested history, quoted words in the log. Nothing is believed and nothing is run: a hostile
reference counts as missing. Others judge what the evidence proves.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

from interlock_rca.records import Evidence
from interlock_rca.sources.git.content import TreeEntry, normalize_path
from interlock_rca.sources.git.evidence_refs import EvidencePointer, parse_reference
from interlock_rca.sources.git.repository import Repository

_QUOTES = "\"'`\N{LEFT DOUBLE QUOTATION MARK}\N{RIGHT DOUBLE QUOTATION MARK}"
_QUOTED = re.compile(rf"[{_QUOTES}](.{{3,}}?)[{_QUOTES}]")


class LogEvidence:
    """A log, by its lines."""

    def __init__(self, text: str) -> None:
        self._lines = text.removesuffix("\n").split("\n") if text else []

    def check_pointer(self, pointer: EvidencePointer) -> Evidence:
        """Check a reference to the log; the result's `ref` is empty."""
        quoted = _QUOTED.match(pointer.words)
        words = " ".join((quoted[1] if quoted else pointer.words).split())
        if not pointer.first:
            return self._find_words(words, "line {} of the log")
        last = max(pointer.first, pointer.last)
        if not 0 < pointer.first <= last <= len(self._lines):
            return _make_evidence("missing", f"the log has only {len(self._lines):,} lines")
        there = " ".join(" ".join(self._lines[pointer.first - 1 : last]).split())
        if not words or words in there:
            return _make_evidence("found", f"line {pointer.first} of the log")
        if quoted:
            return self._find_words(words, "it is line {} of the log")
        why = f"line {pointer.first} of the log; what is said of it does not stand there"
        return _make_evidence("found", why)

    def _find_words(self, words: str, why: str) -> Evidence:
        """Return the first line that contains these words."""
        for number, line in enumerate(self._lines, start=1):
            if words in " ".join(line.split()):
                return _make_evidence("found", why.format(number))
        return _make_evidence("missing", f"these words are not in the log: {words[:100]}")


MAX_REFERENCE_LENGTH = 2_000
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
    """Check each reference, in order. `tested` is the tested branch or commit, of all repositories
    or by name; a repository that lacks it uses its own tip."""
    checker = _EvidenceChecker(repos, tested, log)
    return [checker.check_reference(ref) for ref in refs]


class _EvidenceChecker:
    def __init__(
        self,
        repos: Mapping[str, Repository],
        tested: str | Mapping[str, str],
        log: str | None,
    ) -> None:
        self._repos = {name: repos[name] for name in sorted(repos)}
        self._tested = dict.fromkeys(repos, tested) if isinstance(tested, str) else tested
        self._log = None if log is None else LogEvidence(log)

    def check_reference(self, ref: str) -> Evidence:
        text = " ".join(ref[: MAX_REFERENCE_LENGTH + 1].split())
        label = _clip_reference(ref)
        if len(ref) > MAX_REFERENCE_LENGTH:
            why = f"{len(ref):,} characters are too many for a reference"
            return Evidence(ref=label, verdict=MISSING, why=why)
        if not text.isprintable():
            return Evidence(ref=label, verdict=MISSING, why="it holds characters no path has")
        last: Evidence | None = None
        for alternatives in parse_reference(text, self._repos):
            if not alternatives:
                continue
            known = [pointer for pointer in alternatives if self._knows_revision(pointer)]
            found = self._choose_best(known or alternatives[:1], label)
            if found.verdict == FOUND or any(pointer.is_sure for pointer in alternatives):
                return found
            last = last or found
        return last or Evidence(ref=label, why="it names no file, no commit and no line of the log")

    def _get_tested_revision(self, repository: Repository) -> str:
        return self._tested.get(repository.name, "")

    def _knows_revision(self, pointer: EvidencePointer) -> bool:
        if not pointer.place or not pointer.rev:
            return True
        return any(one.resolve_revision(pointer.rev) for one in self._choose_repositories(pointer))

    def _choose_best(self, alternatives: Sequence[EvidencePointer], label: str) -> Evidence:
        """Return the best result among alternatives; the first wins a tie."""
        verdicts = [verdict for pointer in alternatives for verdict in self._judge_pointer(pointer)]
        found = [one for one in verdicts if one.verdict == FOUND]
        first = (found or sorted(verdicts, key=lambda one: _RANK[one.verdict]))[0]
        missing = [one.why for one in verdicts if one.verdict == MISSING]
        if first.verdict == MISSING and len(missing) > 1:
            first = Evidence(ref="", verdict=MISSING, why="; ".join(dict.fromkeys(missing))[:1_000])
        return Evidence(ref=label, verdict=first.verdict, why=first.why, url=first.url)

    def _judge_pointer(self, pointer: EvidencePointer) -> Iterator[Evidence]:
        if pointer.kind == "log":
            yield (
                self._log.check_pointer(pointer)
                if self._log
                else _make_evidence(UNCHECKED, _NO_LOG)
            )
            return
        if not self._repos:
            yield _make_evidence(UNCHECKED, "no repository is known to look in")
            return
        chosen = self._choose_repositories(pointer)
        if not chosen:
            asked = pointer.repo or pointer.place or "that address"
            known = ", ".join(self._repos)
            yield _make_evidence(UNCHECKED, f"no repository {asked} is known; known are: {known}")
        for repository in chosen:
            if not repository.is_readable:
                why = next((one.sentence for one in repository.problems if one.fatal), "")
                yield _make_evidence(
                    UNCHECKED, why or f"repository {repository.name} cannot be read"
                )
            elif pointer.kind == "commit":
                yield self._check_commit(pointer, repository)
            else:
                yield self._check_file(pointer, repository)

    def _choose_repositories(self, pointer: EvidencePointer) -> list[Repository]:
        repos = list(self._repos.values())
        if pointer.repo:
            asked = pointer.repo.lower()
            return [one for one in repos if one.name.lower() == asked]
        if pointer.place:
            same = [one for one in repos if one.browse and one.browse.place == pointer.place]
            name = pointer.place.rpartition("/")[2]
            unplaced = [one for one in repos if not one.browse and one.name.lower() == name]
            return same or unplaced
        return [one for one in repos if self._has_target(one, pointer)] or repos

    def _has_target(self, repository: Repository, pointer: EvidencePointer) -> bool:
        """Return True if a repository has the commit or the file."""
        if not repository.is_readable:
            return False
        if pointer.kind == "commit":
            return bool(repository.find_commit(pointer.rev))
        _, refusal = _FileSearch(
            repository, repository.resolve_or_tip(self._get_tested_revision(repository))
        ).find_path(pointer.path)
        return refusal is None

    def _check_commit(self, pointer: EvidencePointer, repository: Repository) -> Evidence:
        full = repository.find_commit(pointer.rev)
        if not full:
            return _report_unknown(repository, f"commit {pointer.rev[:12]}")
        outside = self._check_ancestry(full, repository)
        if outside:
            return outside
        why = f"commit {full[:12]} of {repository.name}, on {self._format_label(repository)}"
        return _make_evidence(FOUND, why, repository.build_commit_url(full))

    def _check_ancestry(self, commit: str, repository: Repository) -> Evidence | None:
        """Return what is wrong with an existing commit that is not part of the tested history, or
        None."""
        within = repository.is_on_branch(
            commit, repository.resolve_or_tip(self._get_tested_revision(repository))
        )
        if within:
            return None
        label, name = self._format_label(repository), repository.name
        if within is None:
            return _make_evidence(
                UNCHECKED, f"git cannot tell whether {commit[:12]} of {name} is on {label}"
            )
        return _make_evidence(MISSING, f"{commit[:12]} of {name} exists, but not on {label}")

    def _check_file(self, pointer: EvidencePointer, repository: Repository) -> Evidence:
        rev = repository.resolve_or_tip(self._get_tested_revision(repository))
        if pointer.rev:
            rev = repository.resolve_revision(pointer.rev)
            if not rev:
                return _report_unknown(repository, f"revision {pointer.rev[:100]}")
            outside = self._check_ancestry(rev, repository)
            if outside:
                return outside
        path, refusal = _FileSearch(repository, rev).find_path(pointer.path)
        if refusal:
            return refusal
        entry = repository.read_entry(path, rev)
        if entry is None:
            return _make_evidence(UNCHECKED, f"{path} of {repository.name} cannot be read")
        fault = _find_fault(pointer, path, entry)
        if fault:
            return fault
        url = repository.build_file_url(path, rev, pointer.first, pointer.last)
        return _make_evidence(
            FOUND, f"{_describe_place(pointer, path, entry)} in {repository.name}", url
        )

    def _format_label(self, repository: Repository) -> str:
        tested = self._get_tested_revision(repository)
        label = tested if repository.resolve_revision(tested) else repository.branch
        return label[:12] if _HASH.fullmatch(label) else label


class _FileSearch:
    """Finds the file of a revision that a path means."""

    def __init__(self, repository: Repository, rev: str) -> None:
        self._repository = repository
        self._rev = rev

    def find_path(self, asked: str) -> tuple[str, Evidence | None]:
        """Return the path in the repository, or why there is none."""
        name, plain = self._repository.name, asked.replace("\\", "/")
        for candidate in (plain, plain.removeprefix(f"{name}/"), self._strip_top(plain)):
            exists = self._repository.has_file(candidate, self._rev)
            if exists is None:
                return "", _make_evidence(UNCHECKED, f"{asked[:200]} of {name} cannot be read")
            if exists:
                return normalize_path(candidate), None
        if ".." in plain.split("/"):
            return "", _make_evidence(MISSING, f"{asked[:200]} leads out of the repository {name}")
        matches = self._find_by_ending(plain)
        if len(matches) == 1:
            return matches[0], None
        if matches:
            several = ", ".join(matches[:3])
            return "", _make_evidence(
                MISSING, f"{asked[:200]} may be any of {len(matches)} files: {several}"
            )
        for folder in self._repository.list_files(self._rev).submodules:
            if plain == folder or plain.startswith(f"{folder}/"):
                return "", _make_evidence(
                    UNCHECKED, f"{folder} of {name} is a submodule, which is not read"
                )
        why = f"there is no {asked[:200]} in {name} at {self._rev[:12]}"
        return "", _make_evidence(MISSING, why)

    def _find_by_ending(self, path: str) -> list[str]:
        """Return the files with the same path ending; an absolute path may be longer than
        theirs."""
        names = len([part for part in path.split("/") if part not in ("", ".")])
        matches = self._repository.find_files(path, self._rev)
        if not path.startswith("/") and path[1:2] != ":":
            return [one.path for one in matches if one.shared == names]
        return [one.path for one in matches if one.shared == one.path.count("/") + 1 > 1]

    def _strip_top(self, path: str) -> str:
        top = self._repository.top
        return path.removeprefix(f"{top}/") if top else path


def _find_fault(pointer: EvidencePointer, path: str, entry: TreeEntry) -> Evidence | None:
    """Return what the file lacks of a reference, or None."""
    if not pointer.first and not pointer.words:
        return None
    if entry.kind != "blob":
        return _make_evidence(MISSING, f"{path} is a folder, and has no lines")
    if entry.content is None:
        return _make_evidence(UNCHECKED, f"{path} has {entry.size:,} bytes, too many to look into")
    if pointer.first or pointer.last:
        last = pointer.last or pointer.first
        if not 0 < pointer.first <= last:
            return _make_evidence(MISSING, "lines are counted upwards, from 1")
        if last > entry.line_count:
            return _make_evidence(MISSING, f"{path} has only {entry.line_count:,} lines")
    if pointer.words and not _has_identifier(pointer.words, entry.content):
        return _make_evidence(MISSING, f"{pointer.words[:100]} does not occur in {path}")
    return None


def _has_identifier(words: str, content: bytes) -> bool:
    """Return True if a file contains an identifier, whole or as all of its names."""
    if words.encode() in content:
        return True
    names = _NAMES.findall(words.partition("(")[0] or words)
    if not names or any(map(str.isspace, words.partition("(")[0])):
        return False
    return all(re.search(rb"\b%s\b" % re.escape(name.encode()), content) for name in names)


def _describe_place(pointer: EvidencePointer, path: str, entry: TreeEntry) -> str:
    if pointer.first and pointer.last > pointer.first:
        return f"lines {pointer.first}-{pointer.last} of {path}"
    if pointer.first:
        return f"line {pointer.first} of {path}"
    return f"folder {path}" if entry.kind == "tree" else path


def _report_unknown(repository: Repository, what: str) -> Evidence:
    if repository.is_shallow:
        why = f"{what} is not in {repository.name}, whose clone is shallow"
        return _make_evidence(UNCHECKED, why)
    return _make_evidence(MISSING, f"there is no {what} in {repository.name}")


def _make_evidence(verdict: str, why: str, url: str = "") -> Evidence:
    return Evidence(ref="", verdict=verdict, why=why, url=url)


def _clip_reference(ref: str) -> str:
    """Shorten a reference for storage and display: whole lines of nonsense are cut."""
    text = ref[: _MOST_SHOWN + 1].encode(errors="replace").decode()
    text = "".join(letter if letter.isprintable() else " " for letter in text)
    return text if len(text) <= _MOST_SHOWN else text[:_MOST_SHOWN] + "…"
