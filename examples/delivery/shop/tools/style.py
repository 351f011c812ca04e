"""The shop's own style check: no line of Python is longer than the limit."""

import pathlib
import sys

LIMIT = int(pathlib.Path("tools/limit.txt").read_text())


def main():
    long = [
        f"{path}:{number}: longer than {LIMIT}"
        for path in sorted(pathlib.Path().rglob("*.py"))
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if len(line) > LIMIT
    ]
    print("\n".join(long) or "style holds")
    return 1 if long else 0


if __name__ == "__main__":
    sys.exit(main())
