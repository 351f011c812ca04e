"""Results posted to the server: stored in the project's folder, analysed by its own runs.

An upload's folder is named by its content and CI run, so sending it again changes nothing. It is
checked before it is stored (no bombs, no archives in archives), analysed like `interlock analyze`
in a thread of the server, and removed afterwards. A restarted server continues with unfinished
uploads.
"""

import os
import shutil
import tempfile
import threading
import time
import zipfile
from hashlib import blake2b
from pathlib import Path, PurePosixPath
from queue import SimpleQueue
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import msgspec
from litestar import Request, Response
from litestar.exceptions import HTTPException
from litestar.openapi.datastructures import ResponseSpec
from litestar.params import Parameter

from interlock.api.project import Project
from interlock.api.records import DatabaseAddress, make_absolute
from interlock.journal.address import beside
from interlock.system.errors import InterlockError, NotFoundError, StoreError
from interlock.system.files import make_private_folder, read_file, write_file
from interlock.system.secrets import mask_secrets
from interlock.system.text import format_line
from interlock_web.extend import Problem, find_caller, reading, writing

if TYPE_CHECKING:
    from interlock.runtime.session import RunSession
    from interlock_rca.knowledge.suites import Suite
    from interlock_rca.records import Failure

MAX_UPLOAD: Final = 64 << 20
"""Bytes of one upload."""
MAX_ENTRIES: Final = 5_000
MAX_UNPACKED: Final = 512 << 20
MAX_DEPTH: Final = 32
"""The deepest nesting of folders."""
MAX_RATIO: Final = 200
"""The highest unpacking ratio of a large file."""
_LARGE: Final = 1 << 20
_RECORD: Final = "upload.json"
_RESULTS: Final = "results"
_MAX_RECORD: Final = 1 << 20
_PAUSE: Final = 2.0
"""Seconds before a database in use by another process is tried again."""
_PATIENCE: Final = 3
_STOP_GRACE: Final = 10.0
_ZIP: Final = (b"PK\x03\x04", b"PK\x05\x06")


class Upload(msgspec.Struct, frozen=True, kw_only=True):
    """Uploaded results, and the state of their analysis."""

    id: str
    suite: str
    """The name of the suite of their analysis."""
    run: str
    """The CI run, as the uploader names it."""
    by: str
    """The name on the uploader's token; empty if it was the server's own, or none was needed."""
    at: float
    size: int
    state: Literal["open", "done", "failed"] = "open"
    sentence: str = ""
    """The error, if any."""
    suite_id: int = 0
    """The suite, once its run has begun; 0 if nothing failed."""
    run_id: int = 0
    status: str = ""
    """The status of the run when the analysis ended; empty before."""
    verdict: str = ""
    failures: int = 0
    causes: int = 0
    summary: tuple[str, ...] = ()
    """The output lines of `interlock analyze`."""


class UploadRecord(Upload, frozen=True, kw_only=True):
    """An upload, and the address of its report."""

    address: str


class UploadList(msgspec.Struct, frozen=True):
    reports: list[UploadRecord]


class TooLargeError(InterlockError):
    """The upload is too large, or unpacks to too much."""


class UploadStore:
    """The uploads of a project, as folders beside its database."""

    def __init__(self, db: DatabaseAddress) -> None:
        self.folder = beside(make_absolute(db), "uploads")

    def begin(self) -> "IncomingUpload":
        """Return somewhere to put what is being sent."""
        make_private_folder(self.folder.parent)
        make_private_folder(self.folder)
        return IncomingUpload(Path(tempfile.mkdtemp(prefix=".incoming-", dir=self.folder)))

    def keep(
        self, incoming: "IncomingUpload", *, suite: str, run: str, by: str, at: float
    ) -> tuple[Upload, bool]:
        """Store an upload; return False if it was stored before. Raise TooLargeError for a bomb."""
        text = incoming.finish() + b"\0" + run.encode("utf-8", "replace")
        check_archive(incoming.folder / _RESULTS)
        key = blake2b(text, digest_size=10).hexdigest()
        upload = Upload(
            id=key,
            suite=f"{format_line(suite, 80) or 'results'} {format_line(run, 60) or key[:6]}",
            run=format_line(run, 200),
            by=by,
            at=at,
            size=incoming.size,
        )
        write_file(incoming.folder / _RECORD, msgspec.json.encode(upload))
        try:
            incoming.folder.rename(self.folder / key)
        except OSError:  # it is there: sent before, or by another at this moment
            return self.find(key), False
        return upload, True

    def find(self, upload_id: str) -> Upload:
        known = len(upload_id) == 20 and upload_id.isascii() and upload_id.isalnum()
        raw = read_file(self.folder / upload_id / _RECORD, _MAX_RECORD) if known else None
        if not isinstance(raw, bytes):
            raise NotFoundError(f"there is no upload {upload_id[:40]!r}")
        return msgspec.json.decode(raw, type=Upload)

    def list(self) -> list[Upload]:
        """Return all uploads, the newest first."""
        found = [self.find(path.parent.name) for path in self.folder.glob(f"[!.]*/{_RECORD}")]
        return sorted(found, key=lambda each: (-each.at, each.id))

    def write(self, upload: Upload) -> None:
        write_file(self.folder / upload.id / _RECORD, msgspec.json.encode(upload))

    def find_results(self, upload: Upload) -> Path:
        return self.folder / upload.id / _RESULTS


class IncomingUpload:
    """Arriving bytes, stored and counted; removed at the end unless kept."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.size = 0
        self._file = (folder / _RESULTS).open("wb")
        self._digest = blake2b(digest_size=32)

    def __enter__(self) -> "IncomingUpload":
        return self

    def __exit__(self, *_error: object) -> None:
        self._file.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def write(self, part: bytes) -> None:
        self.size += len(part)
        if self.size > MAX_UPLOAD:
            raise TooLargeError(f"an upload may have at most {MAX_UPLOAD:,} bytes")
        self._digest.update(part)
        self._file.write(part)

    def finish(self) -> bytes:
        """Sync the bytes to disk and return their digest."""
        self._file.flush()
        os.fsync(self._file.fileno())
        return self._digest.digest()


def check_archive(path: Path) -> None:
    """Raise TooLargeError if this is an archive that unpacks to more than it may.

    Its directory is checked here; readers stop where a member holds more than that says.
    """
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


class UploadRuns:
    """Analyses uploads one by one in a thread of the server."""

    def __init__(self, project: Project) -> None:
        self.store = UploadStore(project.db)
        self._project = project
        self._waiting: SimpleQueue[Upload | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="interlock-reports", daemon=True)
        self._stopping = threading.Event()
        self._session: RunSession | None = None

    def __enter__(self) -> "UploadRuns":
        """Continue the unfinished uploads of an earlier server."""
        for path in self.store.folder.glob(".incoming-*"):
            shutil.rmtree(path, ignore_errors=True)
        for upload in reversed(self.store.list()):
            if upload.state == "open":
                self.add(upload)
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        """Stop at once; every decision is kept."""
        self._stopping.set()
        if self._session is not None:
            self._session.stop_soon(now=True)
        self._waiting.put(None)
        self._thread.join(_STOP_GRACE)

    def add(self, upload: Upload) -> None:
        self._waiting.put(upload)

    def _work(self) -> None:
        while (upload := self._waiting.get()) is not None and not self._stopping.is_set():
            try:
                found = self._analyze_patiently(upload)
            except InterlockError as error:
                path = str(self.store.find_results(upload))
                found = {"state": "failed", "sentence": str(error).replace(path, upload.suite)}
            except Exception as error:  # a defect of ours must not end the thread
                sentence = f"the analysis broke: {type(error).__name__}: {error}"
                found = {"state": "failed", "sentence": format_line(sentence, 300)}
            if found:
                self.store.write(msgspec.structs.replace(upload, **found))
                self.store.find_results(upload).unlink(missing_ok=True)

    def _analyze_patiently(self, upload: Upload) -> dict[str, Any]:
        """Analyse as soon as no other process works on the database."""
        failed = 0
        while not self._stopping.is_set():
            try:
                return self._analyze(upload)
            except StoreError:
                failed += self._project.writer() is None
                if failed == _PATIENCE:
                    raise
            self._stopping.wait(_PAUSE)
        return {}

    def _analyze(self, upload: Upload) -> dict[str, Any]:
        """Return the changed fields of an upload; none if the server is stopping."""
        from interlock_rca.analyze import AnalysisRequest, analyze
        from interlock_rca.report.document import build_summary
        from interlock_rca.report.outline import build_outline
        from interlock_rca.report.summary import format_summary

        def keep_numbers(suite: "Suite", _count: int, _is_new: bool) -> None:
            begun = msgspec.structs.replace(upload, suite_id=suite.suite_id, run_id=suite.run_id)
            self.store.write(begun)

        request = AnalysisRequest(
            sources=[str(self.store.find_results(upload))],
            name=upload.suite,
            mask=_mask,
            begun=keep_numbers,
            started=self._take_session,
            wait_for_limits=True,
        )
        found = analyze(self._project, request)
        if found.suite is None or found.result is None or found.findings is None:
            return {"state": "done", "status": "done", "verdict": "nothing failed"}
        result, findings = found.result, found.findings
        if self._stopping.is_set() and result.stopped_by is not None:
            return {}
        summary = build_summary(build_outline(findings))
        return {
            "suite_id": found.suite.suite_id,
            "run_id": found.suite.run_id,
            "summary": tuple(mask_secrets(line.text) for line in format_summary(findings)),
            "state": "done",
            "status": result.status,
            "verdict": summary.verdict,
            "failures": summary.failures,
            "causes": summary.causes,
        }

    def _take_session(self, session: "RunSession") -> None:
        self._session = session
        if self._stopping.is_set():
            session.stop_soon(now=True)


def _mask(failure: "Failure") -> "Failure":
    """Return a failure without passwords and tokens: others can read it from now on."""
    texts = {name: mask_secrets(getattr(failure, name)) for name in ("message", "stack", "log")}
    return msgspec.structs.replace(failure, **texts)


_NAME: Final = "rca"
_PATH: Final = "/reports"
_KINDS: Final = (
    "application/xml",
    "text/xml",
    "application/zip",
    "application/x-zip-compressed",
    "application/octet-stream",
)


@writing(
    _PATH,
    "Send results",
    scopes=("upload",),
    status=201,
    content=_KINDS,
    request_max_body_size=MAX_UPLOAD,
    responses={200: ResponseSpec(UploadRecord, description="It was sent before.")},
)
async def take_upload(
    request: Request[Any, Any, Any],
    project: Project,
    suite: Annotated[
        str, Parameter(max_length=200, description="What the results are of, such as nightly.")
    ] = "",
    run: Annotated[
        str, Parameter(max_length=200, description="The CI run: the same is kept once.")
    ] = "",
) -> Response[UploadRecord]:
    """Send a JUnit file or a zip of them; a run of the server's own analyses them. The report's
    address is returned at once. The same results of the same CI run are the same report."""
    runs: UploadRuns = request.app.state[_NAME]
    by, at = find_caller(request).name, project.clock.now() if project.clock else time.time()
    try:
        with runs.store.begin() as incoming:
            async for part in request.stream():
                incoming.write(part)
            if not incoming.size:
                raise HTTPException("nothing was sent: send a JUnit file or a zip", status_code=400)
            upload, is_new = runs.store.keep(incoming, suite=suite, run=run, by=by, at=at)
    except TooLargeError as error:
        problem = msgspec.json.encode(Problem(str(error)))
        return Response(problem, status_code=413, media_type="application/json")  # type: ignore[arg-type]
    if is_new:
        runs.add(upload)
    found = _describe(request, upload)
    return Response(found, status_code=201 if is_new else 200, headers={"location": found.address})


@reading(_PATH, "Results that were sent", sync_to_thread=True)
def list_uploads(
    request: Request[Any, Any, Any],
    project: Project,
    limit: Annotated[int, Parameter(ge=1, le=500)] = 50,
) -> UploadList:
    """List uploads, newest first."""
    found = UploadStore(project.db).list()[:limit]
    return UploadList([_describe(request, each) for each in found])


@reading(_PATH + "/{upload_id:str}", "One report", scopes=("read", "upload"), sync_to_thread=True)
def show_upload(
    request: Request[Any, Any, Any],
    project: Project,
    upload_id: Annotated[str, Parameter(max_length=40)],
) -> UploadRecord:
    """Show the progress of the analysis, and its summary when it is done."""
    return _describe(request, UploadStore(project.db).find(upload_id))


def _describe(request: Request[Any, Any, Any], upload: Upload) -> UploadRecord:
    address = f"{str(request.base_url).rstrip('/')}/reports/{upload.id}"
    return UploadRecord(**msgspec.structs.asdict(upload), address=address)


HANDLERS: Final = (take_upload, list_uploads, show_upload)
