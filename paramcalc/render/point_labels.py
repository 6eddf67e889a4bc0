"""Labels for the points of a matplotlib plot."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from paramcalc.base.errors import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Offsets of a label from its point in typographic points, and its alignment; the first free one is used.
OFFSETS = (
    (6, 0, "left", "center"),
    (4, 4, "left", "bottom"),
    (0, 6, "center", "bottom"),
    (-4, 4, "right", "bottom"),
    (-4, -4, "right", "top"),
    (4, -4, "left", "top"),
    (0, -6, "center", "top"),
    (-6, 0, "right", "center"),
)


def label_points(axes: Axes, texts: Sequence[tuple[float, float, str]]) -> None:
    """Labels next to their points, omitted where they would hide points, lines or each other."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.patheffects import withStroke

    if not texts:
        return
    renderer = FigureCanvasAgg(axes.figure).get_renderer()
    axes.figure.draw_without_rendering()
    frame = axes.get_window_extent(renderer)
    taken = [text.get_window_extent(renderer) for text in axes.texts] + list(drawn_boxes(axes))
    for x, y, name in texts:
        for dx, dy, across, up in OFFSETS:
            label = axes.annotate(
                printable(name), (x, y), (dx, dy), textcoords="offset points", ha=across, va=up, fontsize=8, zorder=5
            )
            label.set_path_effects([withStroke(linewidth=2.0, foreground="white")])
            box = label.get_window_extent(renderer)
            if not box.count_overlaps(taken) and inside(box, frame):
                taken.append(box)
                break
            label.remove()


def drawn_boxes(axes: Axes) -> Iterator[Any]:
    """Small boxes around points, and along lines at every few pixels."""
    import numpy as np
    from matplotlib.transforms import Bbox

    for line in axes.lines:
        places = axes.transData.transform(line.get_xydata())
        half = 4 if line.get_marker() != "*" else 8
        yield from (Bbox.from_extents(x - half, y - half, x + half, y + half) for x, y in places)
        for start, end in pairwise(places) if line.get_linestyle() == "-" else ():
            steps = np.linspace(start, end, 2 + int(np.hypot(*(end - start)) // 3))
            yield from (Bbox.from_extents(x - 1, y - 1, x + 1, y + 1) for x, y in steps)


def inside(box: Any, frame: Any) -> bool:
    """True if a box lies within another."""
    return bool(box.x0 >= frame.x0 and box.x1 <= frame.x1 and box.y0 >= frame.y0 and box.y1 <= frame.y1)
