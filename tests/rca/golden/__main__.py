"""Writes the golden prompts anew; look at the difference before you keep it."""

from pathlib import Path

from tests.rca.world import RICH, SHORTS, case_at, rendered

if __name__ == "__main__":
    for short in SHORTS:
        file = Path(__file__).parent / f"{short}.md"
        file.write_text(rendered(short, RICH, case_at(short)), encoding="utf-8")
