"""The groups of parameters that say what failed, where and when: one function each.

Every word that comes from outside leaves here as one harmless line, or as MISSING. Longer texts are
the blocks' business.
"""

import re
from collections import Counter
from typing import Any, Final

from interlock.rca.prompt_data.clocks import CLOCK_PLANE_NOTE, between, find_skew, spell, took
from interlock.rca.prompt_data.subject import Subject
from interlock.rca.records import Launch
from interlock.runtime.fence import MISSING
from interlock.system.test_output import TestCounts

_NO_LAUNCH: Final = Launch(launch_id="")
_NAMED: Final = {
    "ocp_version": ("ocpversion", "openshiftversion", "clusterversion"),
    "ocp_build": ("ocpbuild", "openshiftbuild"),
    "hub_ocp_version": ("hubocpversion", "hubopenshiftversion", "hubversion"),
    "hub_ocp_build": ("hubocpbuild", "hubopenshiftbuild"),
    "ptp_operator": ("ptpoperator", "ptpoperatorversion"),
    "sriov_operator": ("sriovoperator", "sriovoperatorversion"),
    "kernel_version": ("kernelversion", "kernel"),
    "cpu_type": ("cputype", "cpu", "cpumodel"),
    "cluster_name": ("clustername", "cluster"),
    "hub_cluster_name": ("hubclustername", "hubcluster"),
}
_POLARION: Final = ("polarionid", "polarion", "polariontestcase", "polariontestcaseid")
_POLARION_URL: Final = ("polarionurl", "polarionlink")
_CIRCUIT: Final = ("circuitid", "circuit", "pipelineid", "pipeline", "buildtag")
_ITEM_TYPE: Final = ("itemtype",)
_STATUS: Final = ("status",)
_LEAF: Final = re.compile(r"::|[./#> ]")
_ADDRESS: Final = re.compile(r"https?://[^\s<>\"'`|\\]+", re.IGNORECASE)


def identity(about: Subject) -> dict[str, Any]:
    launch = about.launch or _NO_LAUNCH
    circuit = _attribute(about, _CIRCUIT)
    if not circuit and launch.name:
        circuit = f"{launch.name} #{launch.number}" if launch.number else launch.name
    return {
        **about.lines(
            {
                "launch_id": launch.launch_id or about.failure.launch,
                "case_id": about.case.case_id,
                "job_id": about.failure.job,
                "circuit_id": circuit,
            }
        ),
        "item_id": about.failure.item_id or MISSING,
        "family": about.family.short,
    }


def envelope(about: Subject) -> dict[str, str]:
    launch = about.launch or _NO_LAUNCH
    return about.lines(
        {
            "name": launch.name,
            "number": launch.number or None,
            "status": launch.status,
            "start": launch.started_at,
            "end": launch.ended_at,
            "duration": spell(between(launch.started_at, launch.ended_at)),
            "version": launch.version,
            "stats": _stats(launch.tally),
            "defect_stats": _defect_stats(about),
        }
    )


def env(about: Subject) -> dict[str, Any]:
    """The named facts of an environment where an attribute tells them, and all attributes."""
    pairs = _pairs(about)
    return {
        **about.lines({name: _attribute(about, keys) for name, keys in _NAMED.items()}),
        "attributes": [
            {"key": about.line(key), "value": about.line(value), "of": of}
            for key, value, of in pairs[: about.limits.attributes]
        ],
        "total": len(pairs),
    }


def git(about: Subject) -> dict[str, str]:
    launch = about.launch or _NO_LAUNCH
    return about.lines({"branch": launch.branch, "commit": launch.commit, "remote": launch.remote})


def failure(about: Subject) -> dict[str, Any]:
    """All of the failed test but its texts."""
    it = about.failure
    job = about.job
    parts = [part for part in re.split(r" ?> ?|/|\|", it.path) if part.strip()]
    return {
        **about.lines(
            {
                "id": it.id,
                "name": it.test_name,
                "short_name": short_name(it.test_name),
                "class_name": it.class_name,
                "type": it.type,
                "item_type": _attribute(about, _ITEM_TYPE),
                "status": _attribute(about, _STATUS) or "failed",
                "parent_path": it.path or it.class_name,
                "parent_name": parts[-1] if parts else it.class_name,
                "start": it.at,
                "end": it.ended_at,
                "duration": spell(took(it)),
                "polarion_id": _attribute(about, _POLARION),
                "file": f"{it.file}:{it.line}" if it.file and it.line else it.file,
                "code_ref": it.code_ref,
                "stats": _stats(job.tally) if job else "",
                "issue_type": it.issue_type,
                "issue_comment": it.issue_comment,
            }
        ),
        "log_truncated": it.log_truncated,
        "auto_analyzed": it.auto_analyzed,
        "tickets": [
            {"ticket_id": about.line(each.ticket_id), "url": _address(about, each.url)}
            for each in it.tickets[: about.limits.rcas]
        ],
    }


def timestamps(about: Subject) -> dict[str, Any]:
    launch = about.launch or _NO_LAUNCH
    it = about.failure
    skew = find_skew(it, about.launch, about.limits.clocks)
    return {
        **about.lines(
            {
                "launch_start": launch.started_at,
                "launch_end": launch.ended_at,
                "launch_duration": spell(between(launch.started_at, launch.ended_at)),
                "failure_start": it.at,
                "failure_end": it.ended_at,
                "failure_duration": spell(took(it)),
                "ci_job_start": launch.ci_started_at,
                "ci_job_end": launch.ci_ended_at,
                "job_clock": about.job.clock if about.job else "",
            }
        ),
        "clock_skew_warning": skew.warning,
        "clock_skew_unchecked": list(skew.unchecked),
        "clock_plane_note": CLOCK_PLANE_NOTE,
    }


def siblings(about: Subject) -> dict[str, Any]:
    shown = [
        {
            **about.lines(
                {
                    "id": each.id,
                    "name": each.name,
                    "parent_name": each.parent_name,
                    "polarion_id": each.polarion_id,
                    "status": each.status,
                    "at": each.at,
                    "error": each.error,
                }
            ),
            "rca_id": each.rca_id or MISSING,
        }
        for each in about.siblings[: about.limits.siblings]
    ]
    total = about.siblings_total
    return {"list": shown, "total": total, "shown": len(shown), "left_out": total - len(shown)}


def workspace(about: Subject) -> dict[str, Any]:
    shown = [
        {
            **about.lines(
                {
                    "name": it.name,
                    "path": it.path,
                    "purpose": it.purpose,
                    "branch": it.branch,
                    "commit": it.commit,
                    "last_green": it.last_green,
                }
            ),
            "url": _address(about, it.url),
        }
        for it in about.repos[: about.limits.repos]
    ]
    return {"repos": shown, "total": len(about.repos)}


def urls(about: Subject) -> dict[str, Any]:
    launch = about.launch or _NO_LAUNCH
    item = about.failure.url
    log = item if item.rstrip("/").endswith("/log") else f"{item.rstrip('/')}/log"
    return {
        "rp_launch": _address(about, launch.url),
        "rp_item": _address(about, item),
        "rp_item_log": _address(about, log if item and about.failure.item_id else ""),
        "ci_job": _address(about, launch.ci_url),
        "polarion": _address(about, _attribute(about, _POLARION_URL)),
        "repos_browse": [
            {"name": about.line(it.name), "url": _address(about, it.url)}
            for it in about.repos[: about.limits.repos]
            if it.url
        ],
    }


def short_name(name: str) -> str:
    """The last part of a test's name, its parameters kept."""
    stem, bracket, rest = name.partition("[")
    parts = [part for part in _LEAF.split(stem) if part]
    # A sentence is a name of its own: only the words of code have an outside and an inside.
    leaf = stem.strip() if " " in stem.strip() else parts[-1] if parts else stem
    return f"{leaf}{bracket}{rest}"


def _pairs(about: Subject) -> list[tuple[str, str, str]]:
    launch = about.launch or _NO_LAUNCH
    found = [(key, value, "launch") for key, value in sorted(launch.attributes.items())]
    return found + [(key, value, "test") for key, value in sorted(about.failure.attributes.items())]


def _attribute(about: Subject, names: tuple[str, ...]) -> str:
    """The value of the first attribute of that meaning; the test's go before the launch's."""
    found = {_key(key): value for key, value, _ in _pairs(about) if value.strip()}
    return next((found[name] for name in names if name in found), "")


def _key(text: str) -> str:
    return "".join(letter for letter in text.lower() if letter.isalnum())


def _address(about: Subject, url: str) -> str:
    found = _ADDRESS.fullmatch(url.strip()) if len(url) < 2_000 else None
    return about.line(found[0]) if found else MISSING


def _stats(tally: TestCounts) -> str:
    if not tally.tests:
        return ""
    passed = max(0, tally.tests - tally.failed - tally.skipped)
    return f"{tally.tests} tests, {tally.failed} failed, {tally.skipped} skipped, {passed} passed"


def _defect_stats(about: Subject) -> str:
    """How the failures that are known here were called before."""
    types = [about.failure.issue_type, *(each.issue_type for each in about.siblings)]
    counts = Counter(about.line(each).lower() for each in types if each)
    return ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))
