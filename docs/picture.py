"""Takes the picture in the README: the report of the real demo, as a browser shows it.

`python -m docs.picture` runs `interlock demo` in a scratch folder; Chromium looks at the page.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PICTURE = Path(__file__).parent / "report.png"
_BROWSERS = ("chromium", "chromium-browser", "google-chrome")
_FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars")


def main() -> None:
    browser = next((found for name in _BROWSERS if (found := shutil.which(name))), None)
    if browser is None:
        sys.exit(f"none of {', '.join(_BROWSERS)} is installed")
    with tempfile.TemporaryDirectory() as scratch:
        world = Path(scratch) / "world"
        command = [sys.executable, "-m", "interlock", "demo", str(world)]
        subprocess.run(command, capture_output=True, check=True)  # noqa: S603
        page = world / "interlock-report" / "1209" / "report.html"
        shot = Path(scratch) / "shot.png"
        subprocess.run(  # noqa: S603
            [
                *(browser, *_FLAGS, f"--user-data-dir={scratch}/profile"),
                *("--window-size=1200,1400", f"--screenshot={shot}", page.as_uri()),
            ],
            capture_output=True,
            check=True,
            timeout=120,
        )
        shutil.copyfile(shot, PICTURE)


if __name__ == "__main__":
    main()
