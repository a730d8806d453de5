"""The picture of a wrong result: error over bound, row by column, tile edges drawn."""

from __future__ import annotations

import io
from typing import Any

import numpy as np

#: The colour scale ends here: ten thousand times the bound looks no worse than a thousand times.
LARGEST_SHOWN = 1e3
#: Numbers stand in the cells of pictures up to this many columns.
MOST_COLUMNS_WITH_NUMBERS = 12


def heat_map(picture: dict[str, Any]) -> bytes:
    """A PNG of a report's ``picture``.

    The colour is the decimal logarithm of error / bound (grey: exact), a cross marks a
    wrong element, lines are tile edges: solid for the cube's, dotted for the vector's.
    """
    # the object interface: no display, no global state
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.colors import LogNorm
    from matplotlib.figure import Figure

    ratio = np.array(picture["error_over_bound"], dtype=np.float64)
    wrong = np.array(picture["wrong"], dtype=np.bool_)
    rows, width = ratio.shape
    figure = Figure(figsize=(min(12.0, 2.6 + 0.34 * width), min(10.0, 1.9 + 0.3 * rows)), dpi=110)
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    axes.set_facecolor("#d0d0d0")
    shown = np.ma.masked_less_equal(np.minimum(ratio, LARGEST_SHOWN), 0.0)
    image = axes.imshow(
        shown,
        cmap="viridis",
        norm=LogNorm(1e-3, LARGEST_SHOWN, clip=True),
        aspect="auto",
        interpolation="nearest",
        extent=(-0.5, width - 0.5, rows - 0.5, -0.5),
    )
    axes.plot(*np.argwhere(wrong).T[::-1], "x", color="#d62728", markersize=5, linestyle="none")
    if width <= MOST_COLUMNS_WITH_NUMBERS and rows <= 2 * MOST_COLUMNS_WITH_NUMBERS:
        for (r, c), value in np.ndenumerate(ratio):
            if value > 0:
                text = "∞" if np.isinf(value) else f"{value:.2g}"
                axes.annotate(
                    text,
                    (c, r),
                    (0, 6),
                    textcoords="offset points",
                    fontsize=6,
                    ha="center",
                    color="white" if value < 1 else "black",
                )
    for (tile_rows, tile_columns), style in (
        (picture["cube_tile"], "-"),
        (picture["vector_tile"], ":"),
    ):
        for edge in range(tile_rows, rows, max(tile_rows, 1)):
            axes.axhline(edge - 0.5, color="black", linewidth=0.8, linestyle=style)
        for edge in range(tile_columns, width, max(tile_columns, 1)):
            axes.axvline(edge - 0.5, color="black", linewidth=0.8, linestyle=style)
    axes.set_xlabel("column")
    axes.set_ylabel("row")
    axes.set_title(f"{int(wrong.sum())} of {wrong.size} elements wrong (x)", fontsize=9)
    axes.set_xticks(range(0, width, max(1, width // 16)))
    axes.set_yticks(range(0, rows, max(1, rows // 16)))
    figure.colorbar(image, ax=axes, label="error / bound", extend="max")
    figure.tight_layout()
    stream = io.BytesIO()
    figure.savefig(stream, format="png")
    return stream.getvalue()


def described(picture: dict[str, Any] | None) -> str:
    """The picture in words, for those who do not see it."""
    if picture is None:
        return "There is no picture: the run gave no numbers."
    wrong = np.array(picture["wrong"], dtype=np.bool_)
    rows, width = wrong.shape
    if not wrong.any():
        return f"All {wrong.size} elements of out ({rows} rows by {width}) are within their bounds."
    places = [f"[{r}, {c}]" for r, c in np.argwhere(wrong)[:8]]
    more = " and more" if wrong.sum() > 8 else ""
    return (
        f"{int(wrong.sum())} of {wrong.size} elements of out ({rows} rows by {width}) are wrong: "
        f"{', '.join(places)}{more}."
    )
