"""ScanU split into a cube and a vector kernel, chained through a temporary in global memory."""

from __future__ import annotations

from scanverify.dialects.pypto import text as dialect
from scanverify.domain.case import Aliasing, CarryInit, Case
from scanverify.domain.kernel import Program, Step
from scanverify.domain.memory import Buffer, Layout, Role
from scanverify.kernels.pypto.scanu import ScanU, scanu_inexpressible


class ScanUSplit(ScanU):
    """Two kernels; every aliasing is between the arguments that they are called with.

    The split changes where the row sums lie, not their value: the dataflow is ScanU's.
    """

    name = "scanu_split"
    summary = "ScanU as a cube kernel and a vector kernel with the row sums in between"

    def inexpressible(self, case: Case) -> str | None:
        """See :func:`scanu_inexpressible`; one tensor for all three also needs one dtype."""
        all_one = case.aliasing is Aliasing.SAME_TENSOR_TWICE
        if all_one and len({f.name for f in case.formats.triple}) > 1:
            return "one tensor has one dtype: x, the temporary and out would be one"
        return scanu_inexpressible(case)

    def layout(self, case: Case) -> Layout:
        """``x``, ``u``, ``row_sums``, ``out`` and perhaps ``carry``."""
        in_format, accumulate, output = case.formats.triple
        shape = (case.rows, case.width)
        # where (allocation, offset) the row sums and out lie
        places: dict[Aliasing, tuple[tuple[str, int], tuple[str, int]]] = {
            Aliasing.TEMPORARY_IS_OUT: (("out", 0), ("out", 0)),
            Aliasing.TEMPORARY_IS_X: (("x", 0), ("out", 0)),
            Aliasing.OUT_IS_X: (("row_sums", 0), ("x", 0)),
            Aliasing.OUT_ONE_ROW_BELOW: (("base", 0), ("base", case.width)),
            Aliasing.OUT_ONE_ROW_ABOVE: (("base", case.width), ("base", 0)),
            Aliasing.SAME_TENSOR_TWICE: (("x", 0), ("x", 0)),
        }
        sums_at, out_at = places.get(case.aliasing, (("row_sums", 0), ("out", 0)))
        x_is_written = "x" in (sums_at[0], out_at[0])
        buffers = [
            Buffer("x", in_format, shape, Role.IN_PLACE if x_is_written else Role.INPUT),
            Buffer("u", in_format, (case.width, case.width), Role.INPUT),
            Buffer("row_sums", accumulate, shape, Role.TEMPORARY, *sums_at),
        ]
        if case.carry is CarryInit.CARRY_IN:
            buffers.append(Buffer("carry", accumulate, (1, 1), Role.INPUT))
        buffers.append(Buffer("out", output, shape, Role.OUTPUT, *out_at))
        return Layout(tuple(buffers))

    def program(self, case: Case) -> Program:
        """Both kernels' source and their two calls."""
        cube = dialect.function(
            "scan_cube",
            [("x", "[R, S]", "IN"), ("u", "[S, S]", "IN"), ("row_sums", "[R, S]", "ACC")],
            [
                dialect.cube_tiles(case),
                dialect.once("CUBE"),
                "    row_sums[:] = pypto.matmul(x, u, ACC)",
            ],
        )
        arguments = [("row_sums", "[R, S]", "ACC"), ("out", "[R, S]", "OUT")]
        if case.carry is CarryInit.CARRY_IN:
            arguments.insert(1, ("carry", "[1, 1]", "ACC"))
        vector = dialect.function(
            "scan_vector",
            arguments,
            [dialect.vector_tiles(case), *dialect.carried_rows(case, "row_sums", "out", "i", "i")],
        )
        steps = (
            Step("scan_cube", ("x", "u", "row_sums")),
            Step("scan_vector", tuple(name for name, _, _ in arguments)),
        )
        return Program(dialect.header(case) + cube + vector, steps)


KERNELS = (ScanUSplit(),)
