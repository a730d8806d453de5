"""Kernels broken on purpose: each is a bundled one with one small change to its program."""

from __future__ import annotations

from dataclasses import dataclass, replace

from scanverify.domain.kernel import Program, Step
from scanverify.kernels.pypto.scanu import ScanU
from scanverify.kernels.pypto.scanu_split import ScanUSplit


@dataclass(frozen=True)
class Edited:
    """A kernel whose source has ``old`` replaced by ``new``; everything it declares stays."""

    original: object
    name: str
    old: str
    new: str

    def __getattr__(self, attribute):
        return getattr(self.original, attribute)

    def program(self, case):
        program = self.original.program(case)
        source = program.source.replace(self.old, self.new)
        return replace(program, source=source)


class OverwrittenTemporary(ScanUSplit):
    """The vector step runs on the temporary itself first: it is read after it was overwritten."""

    name = "broken_overwritten_temporary"

    def program(self, case):
        program = super().program(case)
        cube, vector = program.steps
        into_itself = tuple("row_sums" if a == "out" else a for a in vector.arguments)
        source = program.source
        # out's dtype is the temporary's in the kernel that writes the temporary
        early = source[source.index("\n\n@pypto.frontend.jit", source.index("def scan_cube")) :]
        early = early.replace("def scan_vector", "def scan_early").replace(
            "out: pypto.Tensor([R, S], OUT)", "out: pypto.Tensor([R, S], ACC)"
        )
        early = early.replace("pypto.cast(row, OUT)", "row")
        return Program(source + early, (cube, Step("scan_early", into_itself), vector))


CARRY_FROM_WRONG_COLUMN = Edited(
    ScanU(),
    "broken_wrong_column",
    "running[:] = pypto.view(row, [1, 1], [0, S - 1])",
    "running[:] = pypto.view(row, [1, 1], [0, 0])",
)
LAST_ROW_SKIPPED = Edited(
    ScanU(),
    "broken_last_row_skipped",
    "for i in pypto.loop(R, ",
    "for i in pypto.loop(R - 1, ",
)
WRITES_PAST_THE_END = Edited(
    ScanU(),
    "broken_writes_past_the_end",
    "pypto.assemble(row, [i, 0], out)",
    "pypto.assemble(row, [i + 1, 0], out)",
)
CLOBBERS_ITS_INPUT = Edited(
    ScanU(),
    "broken_clobbers_input",
    "running = pypto.tensor",
    'for _ in pypto.loop(1, name="CLOBBER", idx_name="once"):\n'
    "        x[:] = pypto.matmul(x, u, IN)\n"
    "    running = pypto.tensor",
)
#: Every carry wrong by two ulps: less than the rigorous bound of a long fp32 scan allows.
HIDES_UNDER_THE_RIGOROUS_BOUND = Edited(
    ScanU(),
    "broken_biased",
    "running[:] = pypto.view(row, [1, 1], [0, S - 1])",
    "running[:] = pypto.view(row, [1, 1], [0, S - 1]) * 1.0000002384185791",
)
OVERWRITTEN_TEMPORARY = OverwrittenTemporary()
