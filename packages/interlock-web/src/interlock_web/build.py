"""The whole server put together: pages, HTTP API and MCP, with what installed packages add."""

import warnings
from collections.abc import Iterator, Mapping

from litestar.exceptions import LitestarDeprecationWarning

from interlock.api.checks import DoctorCheck
from interlock.api.project import Project
from interlock.api.pull import open_pull_tools
from interlock.carriers.pull.tools import PullTools
from interlock_web.api.app import DEFAULT_RATE, build_api
from interlock_web.app import build_window
from interlock_web.sections import Section, find_sections, leave_out_rejected
from interlock_web.server import WebServer
from interlock_web.workers import build_mcp_app


def build_server(
    project: Project,
    tools: PullTools,
    sections: Mapping[str, Section],
    left_out: dict[str, str],
    rate: float = DEFAULT_RATE,
    *,
    needs_token: bool = True,
) -> WebServer:
    """The server; a section that it cannot take is added to `left_out`, with the reason."""

    def build(taken: Mapping[str, Section]) -> WebServer:
        return WebServer(
            [
                build_window(project, taken, left_out),
                build_api(project, tools, taken, left_out, rate, needs_token=needs_token),
                build_mcp_app(tools),
            ]
        )

    with warnings.catch_warnings():
        # Litestar 3 will not infer what parameters are; until then handlers say it in fewer words.
        warnings.simplefilter("ignore", LitestarDeprecationWarning)
        return leave_out_rejected(sections, left_out, build)


def explain_left_out(project: Project) -> dict[str, str]:
    """Why sections of installed packages are left out when a server starts."""
    sections, left_out = find_sections()
    build_server(project, open_pull_tools(project), sections, left_out)
    return left_out


def check_pages(project: Project) -> Iterator[DoctorCheck]:
    """Yield a failed check for each package whose pages `interlock serve` cannot show."""
    for name, why in explain_left_out(project).items():
        yield DoctorCheck(f"pages.{name}", False, why)
