"""The door for packages that add pages and parts of the HTTP API.

A package names a `Section` in the entry-point group `interlock.pages`. Handlers of pages ask for
`window: Window`, handlers of the API for `project: Project`.
"""

from interlock_web.api.routes import API_PATH, Problem, reading, writing
from interlock_web.callers import find_caller
from interlock_web.documents import send_document
from interlock_web.sections import NavLink, Section
from interlock_web.window import Window

__all__ = [
    "API_PATH",
    "NavLink",
    "Problem",
    "Section",
    "Window",
    "find_caller",
    "reading",
    "send_document",
    "writing",
]
