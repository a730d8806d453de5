"""Kernel files by mutation of strangers' own: whatever they say, reading them is a sentence.

    python tests/mutated_sources.py COUNT [SEED]

Tokens of one file are dropped, doubled, swapped or taken from another file; nothing is executed.
"""

from __future__ import annotations

import ast
import io
import random
import sys
import tempfile
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from scanverify.domain.case import CaseError
from scanverify.generation.strategies import SUPPORTED_FORMATS, is_expressible, smallest_case
from scanverify.user_kernels.reading import UserKernelError, load_user_kernel

STRANGERS = Path(__file__).parent / "user_kernels"


def tokens_of(text: str) -> list[str]:
    """A source as pieces that give it back when they are joined."""
    lines = text.splitlines(keepends=True)
    pieces, line, column = [], 1, 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        (first, start), (last, end) = token.start, token.end
        while line < first:
            pieces.append(lines[line - 1][column:])
            line, column = line + 1, 0
        if first <= len(lines):
            pieces += [lines[first - 1][column:start], token.string]
        line, column = last, end
    return [piece for piece in pieces if piece]


def mutated(count: int, seed: int) -> Iterator[str]:
    """So many mutated sources, the same for the same seed."""
    chance = random.Random(seed)
    files = [tokens_of(path.read_text()) for path in sorted(STRANGERS.glob("*/*.py"))]
    for _ in range(count):
        pieces = list(chance.choice(files))
        for _ in range(chance.randint(1, 4)):
            place = chance.randrange(len(pieces))
            match chance.randrange(5):
                case 0:
                    del pieces[place : place + chance.randint(1, 6)]
                case 1:
                    pieces.insert(place, pieces[place])
                case 2:
                    other = chance.randrange(len(pieces))
                    pieces[place], pieces[other] = pieces[other], pieces[place]
                case 3:
                    pieces[place] = chance.choice(chance.choice(files))
                case _:
                    pieces[place] = chance.choice(("...", "-1", "0", "10**99", "None", "*", "[]"))
            if not pieces:
                pieces = ["pass"]
        yield "".join(pieces)


def answer_of(path: Path, computes: str) -> str:
    """What reading the file came to; raises whatever is no sentence."""
    try:
        kernel = load_user_kernel(str(path), {"computes": computes}, None)
        for formats in SUPPORTED_FORMATS[:3]:
            if is_expressible(kernel, formats):
                case = smallest_case(kernel, formats)
                ast.parse(kernel.program(case).source)
                kernel.layout(case)
    except (UserKernelError, CaseError) as error:
        if "\n" in str(error):
            raise AssertionError("more than one line") from error
        return "refused"
    return "read"


def main(count: int, seed: int) -> Counter[str]:
    """Read so many sources, and count the answers."""
    answers: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "mutated.py"
        for number, text in enumerate(mutated(count, seed)):
            path.write_text(text)
            try:
                answers[answer_of(path, ("rows", "flat", "columns")[number % 3])] += 1
            except Exception:
                print(text)
                raise
    return answers


if __name__ == "__main__":
    arguments = [int(a) for a in sys.argv[1:]]
    print(dict(main(arguments[0], *(arguments[1:] or [1]))))
