"""Secrets written into a change: token shapes that are well known, keys, odd values of odd names.

Tells where and of which kind, never the value: only its first letters are shown. Values that are
examples by their own words are let pass. Pure.
"""

import re
from collections import Counter
from collections.abc import Iterator
from math import log2
from typing import Final

from interlock.delivery.diff_findings.tell import DiffFinding, Severity
from interlock.system.file_kind import FileKind

_LONGEST_LINE: Final = 4_000
_SHAPES: Final = (
    ("an AWS access key", r"\b(?:AKIA|ASIA)[A-Z2-7]{16}\b"),
    ("a GitHub token", r"\bgh[pousr]_[A-Za-z0-9]{36,251}\b|\bgithub_pat_[A-Za-z0-9_]{60,251}\b"),
    ("a GitLab token", r"\bglpat-[A-Za-z0-9_-]{20,}"),
    ("a Slack token", r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}"),
    ("a Stripe key", r"\b[rs]k_live_[A-Za-z0-9]{20,}"),
    ("a Google API key", r"\bAIza[0-9A-Za-z_-]{35}(?![\w-])"),
    ("an Anthropic key", r"\bsk-ant-[A-Za-z0-9_-]{20,}"),
    ("an OpenAI key", r"\bsk-(?:proj-|svcacct-)?[A-Za-z0-9_-]{40,}"),
    ("an npm token", r"\bnpm_[A-Za-z0-9]{36}\b"),
    ("a PyPI token", r"\bpypi-AgEI[A-Za-z0-9_-]{50,}"),
    ("a Hugging Face token", r"\bhf_[A-Za-z0-9]{30,}\b"),
    ("a SendGrid key", r"\bSG\.[A-Za-z0-9_-]{20,24}\.[A-Za-z0-9_-]{40,45}\b"),
    ("a signed web token", r"\beyJ[\w-]{15,}\.eyJ[\w-]{15,}\.[\w-]{20,}"),
    ("a private key", r"-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----"),
)
_SHAPE: Final = re.compile(
    "|".join(f"(?P<s{number}>{shape})" for number, (_, shape) in enumerate(_SHAPES))
)
_NAMES: Final = {f"s{number}": name for number, (name, _) in enumerate(_SHAPES)}
_ADDRESS: Final = re.compile(r"\b[a-z][a-z0-9+.-]{1,20}://[^\s:/@\"']{1,60}:([^\s@/\"']{6,100})@")
_ASSIGNED: Final = re.compile(
    r"(?i)\b[\w.-]{0,40}(?:api_?key|secret|token|passwd|password|pwd|access_?key|private_?key"
    r"|credential)[\w-]{0,20}[\"']?\s{0,3}(?::\s?=|[:=]|=>)\s{0,3}[brfu]?[\"']([^\"'\s]{12,200})[\"']"
)
_HARMLESS: Final = re.compile(
    r"(?i)example|changeme|change[_-]me|your[_-]|xxxx|\*\*\*|dummy|fake|sample|placeholder|redact"
    r"|not[_-]?a|insecure|[<>{}$%]|test|mock|1234567|abcdef|\.\.\."
)
_LEAST_ENTROPY: Final = 3.4


def secrets(path: str, kind: FileKind, lines: list[tuple[int, str]]) -> Iterator[DiffFinding]:
    for number, text in lines:
        found = _secret(text[:_LONGEST_LINE], kind)
        if found is not None:
            what, shown = found
            severity: Severity = "error" if kind == "source" else "warning"
            sentence = f"{what} ({shown}): take it out, and revoke it if it is real"
            yield DiffFinding(path, number, "secret", sentence, severity)


def _secret(text: str, kind: FileKind) -> tuple[str, str] | None:
    for shape in _SHAPE.finditer(text):
        if not _HARMLESS.search(shape[0].replace("-----BEGIN", "")):
            return _NAMES[shape.lastgroup or ""], _shown(shape[0])
    if kind != "source":
        return None
    address = _ADDRESS.search(text)
    if address and not _HARMLESS.search(address[1]) and _is_odd(address[1]):
        return "a password in an address", _shown(address[1])
    for assigned in _ASSIGNED.finditer(text):
        if not _HARMLESS.search(assigned[1]) and _is_odd(assigned[1]):
            return "a value like a secret", _shown(assigned[1])
    return None


def _is_odd(value: str) -> bool:
    """Whether nobody would write it by hand as a word: letters and digits mixed, no order."""
    if not (re.search(r"\d", value) and re.search(r"[A-Za-z]", value)):
        return False
    return entropy(value) >= _LEAST_ENTROPY


def entropy(value: str) -> float:
    """Bits for each character, by how often each occurs."""
    size = len(value)
    return -sum(n / size * log2(n / size) for n in Counter(value).values()) if size else 0.0


def _shown(value: str) -> str:
    return "the key itself" if value.startswith("---") else f"{value[:4]}…, {len(value)} characters"
