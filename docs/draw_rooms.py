"""Draw the rooms of scanverify and the imports between them into docs/architecture.md.

python docs/draw_rooms.py           # write
python docs/draw_rooms.py --check   # exit code 1 if the picture is not that of the imports
"""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

HOUSE = Path(__file__).parent.parent / "scanverify"
PAGE = Path(__file__).parent / "architecture.md"


def doors() -> set[tuple[str, str]]:
    """Pairs of rooms, the first of which imports from the second."""
    found = set()
    for path in HOUSE.rglob("*.py"):
        room = path.relative_to(HOUSE).parts[0]
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("scanverify."):
                other = (node.module or "").split(".")[1]
                if (HOUSE / other).is_dir() and (HOUSE / room).is_dir() and other != room:
                    found.add((room, other))
    return found


def picture() -> str:
    """The rooms as a Mermaid graph; an arrow that another path makes needless is left out."""
    every = doors()
    below: dict[str, set[str]] = {}
    for one, other in every:
        below.setdefault(one, set()).add(other)

    def reaches(start: str, goal: str) -> bool:
        return any(n == goal or reaches(n, goal) for n in below.get(start, ()))

    lines = ["```mermaid", "graph TD"]
    for one, other in sorted(every):
        if not any(reaches(n, other) for n in below[one] - {other}):
            lines.append(f"    {one} --> {other}")
    return "\n".join([*lines, "```"])


def main() -> int:
    """Write the picture, or hold it against the page."""
    page = PAGE.read_text()
    fresh = re.sub(r"```mermaid\n.*?```", lambda _: picture(), page, count=1, flags=re.S)
    if "--check" in sys.argv:
        return int(fresh != page)
    PAGE.write_text(fresh)
    return 0


if __name__ == "__main__":
    sys.exit(main())
