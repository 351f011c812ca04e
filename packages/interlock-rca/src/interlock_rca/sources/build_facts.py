"""Read properties and attributes about a build: commit, branch, version, where it ran.

A table maps the names that common tools use. Values whose name suggests a secret are never taken
over, because reports hold whole environments.
"""

import re
from collections.abc import Mapping
from typing import Final

import msgspec

from interlock_rca.records import Launch

_NAME_TEXT: Final = {
    "commit": """
        git_commit git_commit_id git_commit_sha git_sha git_revision commit commit_sha commit_id
        commit_hash github_sha ci_commit_sha circle_sha1 build_sourceversion buildkite_commit
        travis_commit build_vcs_number sha bitbucket_commit drone_commit_sha appveyor_repo_commit
        revision vcs_ref
    """,
    "branch": """
        git_branch branch branch_name github_head_ref github_ref_name ci_commit_ref_name
        ci_commit_branch circle_branch buildkite_branch build_sourcebranchname build_sourcebranch
        travis_branch bitbucket_branch drone_branch appveyor_repo_branch git_ref github_ref
    """,
    "version": """
        version product_version app_version application_version project_version software_version
        release release_version build build_version build_id build_number ci_pipeline_iid
        github_run_number
    """,
    "remote": """
        git_remote git_url git_repository ci_repository_url buildkite_repo circle_repository_url
        build_repository_uri repository_url remote
    """,
    "ci_url": """
        build_url ci_job_url ci_pipeline_url circle_build_url buildkite_build_url
        travis_job_web_url ci_url job_url run_url
    """,
}
_NAMES: Final = {field: tuple(text.split()) for field, text in _NAME_TEXT.items()}
_SECRET: Final = re.compile(
    r"passw|passphrase|secret|token|credential|private|auth(?!or(?!i))|cookie|session"
    r"|(?:api|access|ssh|gpg|signing|encryption)[_.-]?key",
    re.IGNORECASE,
)
_PREFIX: Final = re.compile(r"^(?:env|environment|properties|build_env)_(?=.)")
_LONGEST: Final = 300
_MOST: Final = 200


def filter_facts(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the properties that may be shown: none with a secret's name, none that is very
    long."""
    fit = (
        (name[:_LONGEST], value)
        for name, value in properties.items()
        if name and value and len(value) <= _LONGEST and not _SECRET.search(name)
    )
    return dict(pair for pair, _ in zip(fit, range(_MOST), strict=False))


def add_build_facts(launch: Launch, properties: Mapping[str, str]) -> Launch:
    """Return the launch with gaps filled from the properties."""
    facts: dict[str, str] = {}
    for name, value in filter_facts(properties).items():
        facts.setdefault(_normalize_name(name), value.strip())
    found = {
        field: next((facts[name] for name in names if facts.get(name)), "")
        for field, names in _NAMES.items()
    }
    found["branch"] = found["branch"].removeprefix("refs/heads/").removeprefix("origin/")
    fresh = {name: value for name, value in found.items() if value and not getattr(launch, name)}
    return msgspec.structs.replace(launch, **fresh)


def _normalize_name(name: str) -> str:
    return _PREFIX.sub("", re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_"))
