"""The composition root: from words of a user to concrete parts. The only room that names them all.

Each file makes one kind of part; their tables and functions are used from here. What a circuit has
beside its table is in `rca.py`.
"""

from interlock.wiring.files import (
    DELIVERY,
    EPIC,
    FILED,
    PULL,
    RCA,
    ROOT,
    Files,
    file_carrier,
    names,
)
from interlock.wiring.notify import herald
from interlock.wiring.project import (
    DATABASE,
    Notify,
    RoleSettings,
    Settings,
    answers_folder,
    database,
    pull_folder,
    queries_folder,
    query_desk,
    settings,
)
from interlock.wiring.roles import (
    PARALLEL,
    agents_by_role,
    by_hand,
    carriers,
    roles_with,
    split_agent,
    with_patience,
    written_by_hand,
)
from interlock.wiring.specs import ACP, AGENTS, BASIC, Vacancy, agent

__all__ = [
    "ACP",
    "AGENTS",
    "BASIC",
    "DATABASE",
    "DELIVERY",
    "EPIC",
    "FILED",
    "PARALLEL",
    "PULL",
    "RCA",
    "ROOT",
    "Files",
    "Notify",
    "RoleSettings",
    "Settings",
    "Vacancy",
    "agent",
    "agents_by_role",
    "answers_folder",
    "by_hand",
    "carriers",
    "database",
    "file_carrier",
    "herald",
    "names",
    "pull_folder",
    "queries_folder",
    "query_desk",
    "roles_with",
    "settings",
    "split_agent",
    "with_patience",
    "written_by_hand",
]
