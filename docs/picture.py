"""Takes the picture in the README: the real demo, in a terminal drawn as SVG.

`python -m docs.picture` runs `interlock demo` in a scratch folder and keeps the part that explains.
"""

import io
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

PICTURE = Path(__file__).parent / "demo.svg"
_SHOWN = ("$ interlock run", "$ interlock explain", "$ interlock replay")
_MOST = 22


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        command = [sys.executable, "-m", "interlock", "demo", str(Path(scratch) / "world")]
        done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603
    console = Console(record=True, width=104, file=io.StringIO())
    for block in chosen(done.stdout):
        for line in block.splitlines():
            style = "bold green" if line.startswith("$") else "cyan" if "  rule" in line else ""
            console.print(Text(line, style=style))
        console.print()
    drawing = re.sub(
        r"@font-face \{.*?\}", "", console.export_svg(title="interlock demo"), flags=re.DOTALL
    )
    PICTURE.write_text(drawing, encoding="utf-8")


def chosen(output: str) -> list[str]:
    """The commands worth a picture, with the start of what they printed."""
    blocks = ("\n" + output).split("\n$ ")[1:]
    found: dict[str, str] = {}
    for block in blocks:
        lines = f"$ {block}".rstrip().splitlines()
        while lines[-1].endswith((":", "?")) or not lines[-1]:
            lines.pop()
        text = "\n".join(lines[:_MOST])
        for start in _SHOWN:
            if text.startswith(start):
                found[start] = text
    return [found[start] for start in _SHOWN if start in found]


if __name__ == "__main__":
    main()
