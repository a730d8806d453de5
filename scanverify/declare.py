"""The declaration of a user's kernel: a decorator that says what a function computes.

Standard library alone, so that a kernel's file can import it anywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

Function = TypeVar("Function")


def scan_kernel(
    *,
    computes: str = "flat",
    inclusive: bool = True,
    reverse: bool = False,
    accumulate: str | None = None,
    roles: Mapping[str, str] | None = None,
    in_place: bool = False,
) -> Callable[[Function], Function]:
    """Declare a kernel; goes above PyPTO's own decorator and leaves the function as it is.

    ``computes``: ``"flat"`` (all elements in row-major order), ``"rows"`` or ``"columns"``.
    ``accumulate``: the format of sums and carry, if it is not that of ``out``.
    ``roles``: what each parameter is whose name does not tell: ``x``, ``out``, ``upper``,
    ``lower``, ``ones``, ``carry`` or ``temporary``. ``in_place``: it has to be right where its
    buffers are one tensor, too. scanverify reads the declaration from the
    source, so all arguments have to be literals.
    """

    def declared(function: Function) -> Function:
        return function

    return declared
