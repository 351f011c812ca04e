"""Mask secrets in text before it is kept where others can read it.

Tokens are recognised by the forms of common services and by the words before a value. This is the
last safety net: secrets are best never written.
"""

import re
from typing import Final

MASK: Final = "[masked]"
_TOKENS: Final = re.compile(
    r"\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|gl(?:pat|ptt|dt|rt|cbt|ft)-[\w-]{16,}"
    r"|xox[abeprs]-[\w-]{10,}|(?:AKIA|ASIA)[A-Z0-9]{16}|AIza[\w-]{35}|sk-[\w-]{20,}"
    r"|npm_[A-Za-z0-9]{30,}|pypi-[\w-]{30,}|dop_v1_[0-9a-f]{40,}|hvs\.[\w-]{20,}"
    r"|interlock_[0-9a-f]{12}_[0-9a-f]{20,}"
    r"|eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]{4,})"
)
_KEY_BLOCK: Final = re.compile(
    r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----.*?(?:-----END [A-Z ]{0,40}PRIVATE KEY-----|\Z)",
    re.DOTALL,
)
_IN_URL: Final = re.compile(r"(?<=://)[^\s/@:]{1,200}:[^\s/@]{1,500}(?=@)")
_NAMED: Final = re.compile(
    r"(?i)((?:pass(?:word|wd|phrase)|secret|token|api[_-]?key|access[_-]?key|private[_-]?key"
    r"|credential|authorization|auth)[\w-]{0,30}[\"']?\s{0,3}[=:]\s{0,3}[\"']?"
    r"(?:(?:bearer|basic|token)\s{1,3})?)([^\s\"',;&]{4,})"
)
_BEARER: Final = re.compile(r"(?i)\b(bearer\s{1,3})([\w.~+/-]{16,}=*)")


def mask_tokens(text: str) -> str:
    """Mask what can only be a token: for names, in which `auth: login` is not a secret."""
    if "://" in text:
        text = _IN_URL.sub(MASK, text)
    return _TOKENS.sub(MASK, text)


def mask_secrets(text: str) -> str:
    """Mask what looks like a password, a token or a private key."""
    if "PRIVATE KEY" in text:
        text = _KEY_BLOCK.sub(MASK, text)
    text = mask_tokens(text)
    text = _NAMED.sub(rf"\1{MASK}", text)
    return _BEARER.sub(rf"\1{MASK}", text)
