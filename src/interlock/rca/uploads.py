"""Results that CI sends to a server: kept until they are analysed, then reports with an address.

An upload is a folder named by its content and its CI run, so that sending it again changes nothing.
What was sent is looked at before it is kept (no bombs, no archives in archives), analysed in a
process of its own, one after the other, and removed afterwards. A server that is stopped or killed
goes on with what it had not finished.
"""

import asyncio
import contextlib
import os
import shutil
import sys
import tempfile
import time
import zipfile
from collections.abc import AsyncIterator, Callable, Iterable
from hashlib import blake2b
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from interlock.api.project import Project
from interlock.api.records import DatabaseAddress, make_absolute
from interlock.journal.address import PostgresAddress, beside
from interlock.system.errors import InterlockError, NotFoundError, StoreError
from interlock.system.files import make_private_folder, read_file, write_file
from interlock.system.secrets import mask_secrets
from interlock.system.text import format_line

if TYPE_CHECKING:
    from interlock.rca.sources.read import SourceLaunch

MAX_UPLOAD: Final = 64 << 20
"""Bytes of one upload."""
MAX_ENTRIES: Final = 5_000
MAX_UNPACKED: Final = 512 << 20
MAX_DEPTH: Final = 32
"""Folders in folders."""
MAX_RATIO: Final = 200
"""Times that a file may unpack to its packed size, once it is large at all."""
_LARGE: Final = 1 << 20
_RECORD: Final = "upload.json"
_RESULTS: Final = "results"
_REPORT: Final = "report"
_MAX_RECORD: Final = 1 << 20
_BUSY_PAUSE: Final = 2.0
"""Seconds after which a database that others write to is tried again."""
_STOP_GRACE: Final = 10.0
_ZIP: Final = (b"PK\x03\x04", b"PK\x05\x06")

UploadState = Literal["queued", "analysing", "done", "failed"]


class Upload(msgspec.Struct, frozen=True, kw_only=True):
    """Results that were sent, and what became of them."""

    upload_id: str
    suite: str
    """The name of the suite that they are analysed as."""
    run: str
    """The CI run that they are of, in its own words."""
    by: str
    """Whose token sent them; empty if it was the server's own, or none was needed."""
    at: float
    size: int
    state: UploadState = "queued"
    sentence: str = ""
    """What went wrong, or what it waits for."""
    suite_id: int = 0
    """The suite, once it is analysed; 0 if nothing failed."""
    status: str = ""
    """How the analysis ended: as the status of a run."""
    verdict: str = ""
    failures: int = 0
    causes: int = 0
    summary: tuple[str, ...] = ()
    """What `interlock analyze` prints."""
    finished_at: float = 0.0

    @property
    def is_over(self) -> bool:
        return self.state in ("done", "failed")


class TooLargeError(InterlockError):
    """The upload is too large, or unpacks to too much."""


class UploadStore:
    """The uploads of a project, as folders beside its database."""

    def __init__(self, db: DatabaseAddress) -> None:
        self.folder = beside(make_absolute(db), "uploads")

    def begin(self) -> "IncomingUpload":
        """Somewhere to put what is being sent."""
        make_private_folder(self.folder.parent)
        make_private_folder(self.folder)
        return IncomingUpload(Path(tempfile.mkdtemp(prefix=".incoming-", dir=self.folder)))

    def keep(
        self, incoming: "IncomingUpload", *, suite: str, run: str, by: str, at: float
    ) -> tuple[Upload, bool]:
        """Keep what was sent, and whether that is new; TooLargeError for a bomb."""
        size, digest = incoming.finish()
        check_archive(incoming.results)
        key = blake2b(digest + b"\0" + run.encode("utf-8", "replace"), digest_size=10).hexdigest()
        name = format_line(suite, 80) or "results"
        upload = Upload(
            upload_id=key,
            suite=f"{name} {format_line(run, 60) or key[:6]}",
            run=format_line(run, 200),
            by=by,
            at=at,
            size=size,
        )
        write_file(incoming.folder / _RECORD, msgspec.json.encode(upload))
        try:
            incoming.folder.rename(self.folder / key)
        except OSError:  # it is there: sent before, or by another at this moment
            incoming.discard()
            return self.find(key), False
        return upload, True

    def find(self, upload_id: str) -> Upload:
        known = len(upload_id) == 20 and upload_id.isascii() and upload_id.isalnum()
        raw = read_file(self.folder / upload_id / _RECORD, _MAX_RECORD) if known else None
        if not isinstance(raw, bytes):
            raise NotFoundError(f"there is no upload {upload_id[:40]!r}")
        return msgspec.json.decode(raw, type=Upload)

    def list(self) -> list[Upload]:
        """All uploads, the newest first."""
        if not self.folder.is_dir():
            return []
        found = []
        for path in self.folder.iterdir():
            with contextlib.suppress(NotFoundError, msgspec.DecodeError):
                found.append(self.find(path.name))
        return sorted(found, key=lambda each: (-each.at, each.upload_id))

    def write(self, upload: Upload) -> None:
        write_file(self.folder / upload.upload_id / _RECORD, msgspec.json.encode(upload))

    def find_results(self, upload: Upload) -> Path:
        return self.folder / upload.upload_id / _RESULTS

    def find_report(self, upload: Upload) -> Path:
        """The folder with the report's documents."""
        return self.folder / upload.upload_id / _REPORT

    def clean(self) -> None:
        """Remove what was never sent to its end."""
        for path in self.folder.glob(".incoming-*"):
            shutil.rmtree(path, ignore_errors=True)


class IncomingUpload:
    """Bytes as they come, on disk and counted."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.results = folder / _RESULTS
        self._file = self.results.open("wb")
        self._hash = blake2b(digest_size=32)
        self.size = 0

    def write(self, part: bytes) -> None:
        self.size += len(part)
        if self.size > MAX_UPLOAD:
            raise TooLargeError(f"an upload may have at most {MAX_UPLOAD:,} bytes")
        self._hash.update(part)
        self._file.write(part)

    def finish(self) -> tuple[int, bytes]:
        """How many bytes came, and what tells them from others."""
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        return self.size, self._hash.digest()

    def discard(self) -> None:
        self._file.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def check_archive(path: Path) -> None:
    """TooLargeError if this is an archive that unpacks to more than it may. What its directory
    says is checked here; whoever reads a member stops where it says more than that."""
    with path.open("rb") as file:
        if file.read(4) not in _ZIP:
            return
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
    except (zipfile.BadZipFile, NotImplementedError, OSError, ValueError):
        return  # the analysis says what is wrong with it
    if len(members) > MAX_ENTRIES:
        raise TooLargeError(f"the archive has {len(members):,} files; at most {MAX_ENTRIES:,}")
    if sum(each.file_size for each in members) > MAX_UNPACKED:
        raise TooLargeError(f"the archive unpacks to more than {MAX_UNPACKED >> 20} MiB")
    for each in members:
        name = format_line(each.filename, 80)
        if len(PurePosixPath(each.filename).parts) > MAX_DEPTH:
            raise TooLargeError(f"{name} lies more than {MAX_DEPTH} folders deep")
        if each.filename.lower().endswith((".zip", ".jar", ".gz", ".tgz", ".xz", ".bz2")):
            raise TooLargeError(f"{name} is an archive in the archive: send what is in it")
        if each.file_size > _LARGE and each.file_size > MAX_RATIO * max(1, each.compress_size):
            raise TooLargeError(f"{name} unpacks to more than {MAX_RATIO} times its size")


def name_database(project: Project) -> dict[str, str]:
    """The environment of a process that is to work on the same database. In the environment and not
    among its words: an address may hold a password."""
    db = make_absolute(project.db)
    return {**os.environ, "INTERLOCK_DB": db.url if isinstance(db, PostgresAddress) else str(db)}


class UploadQueue:
    """Analyses uploads in the background, one after the other."""

    def __init__(
        self, project: Project, is_done: Callable[[Upload], None] = lambda _upload: None
    ) -> None:
        """`is_done` is told of each upload that was analysed."""
        self.store = UploadStore(project.db)
        self._project = project
        self._is_done = is_done
        self._waiting: asyncio.Queue[str] = asyncio.Queue()

    @contextlib.asynccontextmanager
    async def run(self) -> "AsyncIterator[UploadQueue]":
        """Work while the block lasts, first on what was left over."""
        self.store.clean()
        for upload in reversed(self.store.list()):
            if not upload.is_over:
                self._waiting.put_nowait(upload.upload_id)
        working = asyncio.create_task(self._work())
        try:
            yield self
        finally:
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)

    def add(self, upload: Upload) -> None:
        self._waiting.put_nowait(upload.upload_id)

    async def _work(self) -> None:
        while True:
            upload = self.store.find(await self._waiting.get())
            self.store.write(msgspec.structs.replace(upload, state="analysing"))
            # The process writes down what it finds; here only that it did not come to an end.
            code = await self._analyze(upload)
            while code == _BUSY:
                await asyncio.sleep(_BUSY_PAUSE)
                code = await self._analyze(upload)
            found = self.store.find(upload.upload_id)
            if not found.is_over:
                sentence = f"the analysis ended with exit code {code}; send the results again"
                failed = {"state": "failed", "sentence": sentence, "finished_at": time.time()}
                self.store.write(msgspec.structs.replace(found, **failed))
            self.store.find_results(upload).unlink(missing_ok=True)
            self._is_done(found)

    async def _analyze(self, upload: Upload) -> int:
        """In a process of its own: a page must not wait for it, nor the server die of it."""
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", "interlock.rca.uploads", str(self.store.folder / upload.upload_id)),
            cwd=self._project.path,
            env=name_database(self._project),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            return await process.wait()
        except asyncio.CancelledError:
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
                async with asyncio.timeout(_STOP_GRACE):
                    await process.wait()
            raise


_BUSY: Final = 75
"""The exit code of an analysis that could not begin, because others write to the database."""


def analyze_upload(folder: Path, project: Project) -> int:
    """Analyse what was sent with the built-in analyst, and write down what became of it."""
    store = UploadStore(project.db)
    upload = store.find(folder.name)
    try:
        if project.writer() is not None and not isinstance(project.db, PostgresAddress):
            return _BUSY
        found = _analyze(project, upload, store)
    except StoreError as error:
        if project.writer() is not None and not isinstance(project.db, PostgresAddress):
            return _BUSY
        found = {"state": "failed", "sentence": str(error)}
    except InterlockError as error:
        found = {
            "state": "failed",
            "sentence": str(error).replace(str(folder / _RESULTS), upload.suite),
        }
    store.write(msgspec.structs.replace(upload, **found, finished_at=time.time()))
    return 0


def _analyze(project: Project, upload: Upload, store: UploadStore) -> dict[str, Any]:
    from interlock.rca import analyze as analysis
    from interlock.rca.report.document import build_summary
    from interlock.rca.report.outline import build_outline
    from interlock.rca.report.summary import format_summary

    source = str(store.find_results(upload))
    intakes = _mask(analysis.read_launches([source], upload.suite, None, lambda _note: None))
    with project.write() as connection:
        found = analysis.find_matching_suite(connection, upload.suite, intakes)
        if found is None and not any(intake.failures for intake in intakes):
            return {"state": "done", "status": "done", "verdict": "nothing failed"}
        circuit, changes = project.prepare_circuit(analysis.CIRCUIT, {})
        before = analysis.find_config(project, connection, found, changes, {})
        options = analysis.assign_reviewer(before, analysis.read_config(before))
        pool = project.build_pool(circuit.source.circuit, options)
        suite, _ = analysis.add_launches(connection, found, upload.suite, circuit, intakes, options)
        del intakes
        result = analysis.work_on_suite(
            project, connection, suite, pool, wait_for_humans=False, wait_for_limits=True
        )
        findings = analysis.collect_findings(connection, suite)
        analysis.write_report(findings, store.find_report(upload))
    summary = build_summary(build_outline(findings))
    lines = tuple(mask_secrets(line.text) for line in format_summary(findings))
    return {
        "summary": lines,
        "state": "done",
        "suite_id": suite.suite_id,
        "status": result.status,
        "verdict": summary.verdict,
        "failures": summary.failures,
        "causes": summary.causes,
    }


def _mask(intakes: "Iterable[SourceLaunch]") -> "list[SourceLaunch]":
    """What others can read from now on holds no passwords or tokens."""
    return [
        msgspec.structs.replace(
            intake,
            failures=[
                msgspec.structs.replace(
                    each,
                    message=mask_secrets(each.message),
                    stack=mask_secrets(each.stack),
                    log=mask_secrets(each.log),
                )
                for each in intake.failures
            ],
        )
        for intake in intakes
    ]


def main() -> None:
    """`python -m interlock.rca.uploads FOLDER`: what the queue starts."""
    sys.exit(analyze_upload(Path(sys.argv[1]), Project()))


if __name__ == "__main__":
    main()
