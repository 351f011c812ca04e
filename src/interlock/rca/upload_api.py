"""Uploads of results over the HTTP API."""

import time
from typing import Annotated, Any, Final

import msgspec
from litestar import Request, Response
from litestar.exceptions import HTTPException
from litestar.openapi.datastructures import ResponseSpec
from litestar.params import Parameter

from interlock.api.project import Project
from interlock.rca.uploads import MAX_UPLOAD, TooLargeError, Upload, UploadQueue, UploadStore
from interlock.web.api.app import API_PATH
from interlock.web.api.routes import Problem, reading, writing
from interlock.web.callers import find_caller

_NAME: Final = "rca"
_UPLOADS: Final = "/reports"
_KINDS: Final = (
    "application/xml",
    "text/xml",
    "application/zip",
    "application/x-zip-compressed",
    "application/octet-stream",
)
_MAY_SEE: Final = ("read", "upload")


class UploadRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Results that were sent, and what became of them."""

    id: str
    state: str
    """queued, analysing, done or failed."""
    address: str
    """The report's page."""
    suite: str
    run: str
    by: str
    at: float
    finished_at: float
    size: int
    sentence: str
    """What went wrong, if anything did."""
    suite_id: int
    status: str
    """How the analysis ended: done, unhealthy, waiting, budget; empty before."""
    verdict: str
    failures: int
    causes: int
    summary: tuple[str, ...]
    """What `interlock analyze` prints, line by line."""


class UploadList(msgspec.Struct, frozen=True):
    reports: list[UploadRecord]


@writing(
    _UPLOADS,
    "Send results",
    scopes=("upload",),
    status=201,
    content=_KINDS,
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
    """Send a JUnit file or a zip of them; they are analysed in the background. The report's address
    is returned at once. The same results of the same run are the same report."""
    queue: UploadQueue = request.app.state[_NAME]
    incoming = queue.store.begin()
    try:
        async for part in request.stream():
            incoming.write(part)
        if not incoming.size:
            raise HTTPException("nothing was sent: send a JUnit file or a zip", status_code=400)
        by = find_caller(request).name
        upload, is_new = queue.store.keep(
            incoming, suite=suite, run=run, by=by, at=_read_clock(project)
        )
    except TooLargeError as error:
        problem = msgspec.json.encode(Problem(str(error)))
        return Response(problem, status_code=413, media_type="application/json")  # type: ignore[arg-type]
    finally:
        incoming.discard()
    if is_new:
        queue.add(upload)
    found = _describe(request, upload)
    return Response(found, status_code=201 if is_new else 200, headers={"location": found.address})


@reading(_UPLOADS, "Results that were sent", sync_to_thread=True)
def list_uploads(
    request: Request[Any, Any, Any],
    project: Project,
    limit: Annotated[int, Parameter(ge=1, le=500)] = 50,
) -> UploadList:
    """The newest first."""
    found = UploadStore(project.db).list()[:limit]
    return UploadList([_describe(request, each) for each in found])


@reading(_UPLOADS + "/{upload_id:str}", "One report", scopes=_MAY_SEE, sync_to_thread=True)
def show_upload(
    request: Request[Any, Any, Any],
    project: Project,
    upload_id: Annotated[str, Parameter(max_length=40)],
) -> UploadRecord:
    """How far the analysis is, and its summary when it is done."""
    return _describe(request, UploadStore(project.db).find(upload_id))


def _describe(request: Request[Any, Any, Any], upload: Upload) -> UploadRecord:
    return UploadRecord(
        id=upload.upload_id,
        state=upload.state,
        address=f"{str(request.base_url).rstrip('/')}/reports/{upload.upload_id}",
        suite=upload.suite,
        run=upload.run,
        by=upload.by,
        at=upload.at,
        finished_at=upload.finished_at,
        size=upload.size,
        sentence=upload.sentence,
        suite_id=upload.suite_id,
        status=upload.status,
        verdict=upload.verdict,
        failures=upload.failures,
        causes=upload.causes,
        summary=upload.summary,
    )


def _read_clock(project: Project) -> float:
    return project.clock.now() if project.clock else time.time()


HANDLERS: Final = (take_upload, list_uploads, show_upload)
BODY_LIMITS: Final = {API_PATH + _UPLOADS: MAX_UPLOAD}
