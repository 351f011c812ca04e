"""Find the role of a repository: declared in one word, else guessed from its files.

Words inside a sentence do not count: "the product and its tests" says nothing about either.
"""

import re
from collections.abc import Iterable

from interlock.system.file_kinds import find_kind, find_language

PRODUCT, TESTS, INFRASTRUCTURE, MIXED = "product", "tests", "infrastructure", "mixed"
ROLES = (PRODUCT, TESTS, INFRASTRUCTURE, MIXED)
_NEARLY_ALL = 0.85
"""The share of tests among the code at which a repository holds tests only."""
_MOSTLY = 0.6
"""The share of build and deployment files at which a repository is infrastructure. A product has
some too."""
_HARDLY_ANY = 0.05
_CALLED_TESTS = re.compile(r"(?:^|[^a-z0-9])(?:tests|e2e|test-?suites?)$", re.IGNORECASE)
_DEPLOYMENT = re.compile(
    r"(?:^|/)(?:\.github|\.circleci|\.buildkite|\.tekton|charts?|helm|ansible|playbooks?|roles"
    r"|terraform|kustomize|k8s|kubernetes|manifests|deploy(?:ments?)?|environments?|pipelines?)/"
    r"|(?:^|/)(?:Dockerfile[^/]*|docker-compose[^/]*|Jenkinsfile[^/]*|Chart\.yaml|Vagrantfile"
    r"|kustomization\.ya?ml|\.gitlab-ci\.yml|azure-pipelines\.ya?ml|bitbucket-pipelines\.yml)$"
    r"|\.(?:tf|tfvars|hcl|nomad|bicep)$"
)


def guess_role(paths: Iterable[str], name: str = "") -> str:
    """Return the role by a repository's files; empty without code. If it has some tests and is
    called "…-tests", the rest supports them."""
    files = [path for path in paths if find_kind(path) in ("test", "source")]
    deployed = sum(bool(_DEPLOYMENT.search(path)) for path in files)
    code = [path for path in files if find_language(path) not in ("", "data", "shell")]
    if files and deployed >= _MOSTLY * len(files):
        return INFRASTRUCTURE
    if not code:
        return ""
    share = sum(find_kind(path) == "test" for path in code) / len(code)
    if share >= (_HARDLY_ANY if _CALLED_TESTS.search(name) else _NEARLY_ALL):
        return TESTS
    return MIXED if share >= _HARDLY_ANY else PRODUCT
