"""The first-order linear recurrence ``h_t = a_t h_{t-1} + x_t`` down the rows, in chunked form.

Each chunk is solved from zero, with the running product of its decays beside it; then the
state at its start, times that product, is added: the form in which linear attention and
state-space models run. Every column is a recurrence of its own.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from scanverify.dialects.pypto import text as dialect
from scanverify.domain.analysis import Quantity
from scanverify.domain.case import Case
from scanverify.domain.formats import FloatArray
from scanverify.domain.oracle import Axis, Scan
from scanverify.kernels.pypto.form import PyptoScan, row_range, stored, widened, zero


class Recurrence(PyptoScan):
    """Chunks of ``chunk`` rows; the first state is zero."""

    name = "recurrence"
    summary = "h_t = a_t h_{t-1} + x_t down the rows: chunks from zero, then their first state"
    has_chunks = True
    has_carry = False

    def scan(self, case: Case) -> Scan:
        """The decayed scan down each column."""
        return Scan(axis=Axis.COLUMNS, decayed=True)

    def inexpressible(self, case: Case) -> str | None:
        """Decays are fractions."""
        if any(fmt.is_integer for fmt in case.formats.triple):
            return "a decay is a fraction, and integers have none"
        return super().inexpressible(case)

    def constants(self, case: Case) -> Mapping[str, FloatArray]:
        """None: the decay is an input."""
        return {}

    def dataflow(self, case: Case, inputs: Mapping[str, Quantity]) -> Quantity:
        """The chain of local states and products, then the addition of the first state."""
        _, accumulate, output = case.formats.triple
        x = inputs["x"].rounded(accumulate, "widening")
        decay = inputs["decay"].rounded(accumulate, "widening")
        nothing = Quantity.known(np.zeros(case.width), accumulate, x.law)
        unit = Quantity.known(np.ones(case.width), accumulate, x.law)
        first, rows = nothing, []
        for start, stop in self.chunks(case):
            local, product, states = nothing, unit, []
            for t in range(start, stop):
                decayed = local.times(decay[t], accumulate, "decay")
                local = decayed.plus(x[t], accumulate, "local chain")
                product = product.times(decay[t], accumulate, "decay product")
                share = product.times(first, accumulate, "state")
                states.append(local.plus(share, accumulate, "state addition"))
            first = states[-1]
            rows += states
        return Quantity.stack(rows).rounded(output, "output rounding")

    def body(self, case: Case) -> list[str]:
        """One loop for each chunk."""
        lines = [
            'first = pypto.tensor([1, S], ACC, "first")',
            dialect.once("FIRST"),
            f"    first[:] = pypto.full([1, S], {zero(case)}, ACC)",
        ]
        a = widened(case, "pypto.view(decay, [1, S], [i, 0])")
        b = widened(case, "pypto.view(x, [1, S], [i, 0])")
        for k, (start, stop) in enumerate(self.chunks(case)):
            lines += [
                f'local{k} = pypto.tensor([1, S], ACC, "local{k}")',
                f'product{k} = pypto.tensor([1, S], ACC, "product{k}")',
                f'last{k} = pypto.tensor([1, S], ACC, "last{k}")',
                dialect.once(f"START{k}"),
                f"    local{k}[:] = pypto.full([1, S], {zero(case)}, ACC)",
                f"    product{k}[:] = pypto.full([1, S], 1.0, ACC)",
                row_range(case, f"CHUNK{k}", start, stop),
                f"    a = {a}",
                f"    state = local{k} * a + {b}",
                f"    grown = product{k} * a",
                "    finished = state + grown * first",
                f"    pypto.assemble({stored(case, 'finished')}, [i, 0], out)",
                f"    local{k}[:] = state",
                f"    product{k}[:] = grown",
                f"    last{k}[:] = finished",
                dialect.once(f"NEXT{k}"),
                f"    first[:] = last{k} + {zero(case)}",
            ]
        return lines


KERNELS = (Recurrence(),)
