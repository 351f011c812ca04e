"""Texts from outside that try to be more than text, and what must stay outside of a fence."""

from hypothesis import strategies as st

FENCE = "5e1fc0ffee42"

END = f"--- end {FENCE} ---"
NASTY = st.sampled_from(
    [
        FENCE,
        FENCE.upper(),
        END,
        f"--- data {FENCE}: x ---",
        f"\n{END}\n",
        f"{FENCE[:5]}\x00{FENCE[5:]}",
        f"{FENCE[:6]}\u200b{FENCE[6:]}",
        f"{FENCE[:4]}\x1b[31m{FENCE[4:]}",
        "{{ 7*7 }}",
        "{% raw %}",
        "\r",
        "\u2028",
        "\x85",
        "\ud800",
        "\x1b]0;title\x07",
        "# head",
        "```",
        "\x00",
        "\n",
        "-" * 9,
    ]
)
HOSTILE = st.lists(st.text() | NASTY, max_size=12).map("".join)
LINKS = (
    "javascript:alert(1)",
    "javascript://evil.example/%0aalert(1)",
    "JaVaScRiPt:alert(1)",
    "data:text/html,<script>alert(1)</script>",
    "//evil.example/x",
    "https://user:secret@evil.example/x",
    'https://evil.example/"onclick="alert(1)',
    "https://evil.example/\nx",
    "vbscript:x",
    "file:///etc/passwd",
    "http://[::1",
    "https://",
)


def outside(text: str, mark: str = FENCE) -> str:
    """What stands outside all fences; a fence that is not closed, or is opened twice, is an
    error."""
    kept: list[str] = []
    inside = False
    for line in text.split("\n"):
        if line.startswith(f"--- data {mark}: "):
            assert not inside, "a fence inside a fence"
            inside = True
        elif line == f"--- end {mark} ---":
            assert inside, "a fence ends that never began"
            inside = False
        elif not inside:
            kept.append(line)
    assert not inside, "a fence is not closed"
    return "\n".join(kept)
