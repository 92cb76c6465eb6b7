"""Places labels next to points so that they cover neither points nor each other."""

from collections.abc import Sequence
from typing import NamedTuple

CHARACTER = 7.0
"""Approximate width of a character of a label, in pixels."""
HEIGHT = 15.0
"""Height of a line of characters, with the room that letters need above and below."""


Label = tuple[str, float, float]
"""Alignment, dx and dy in pixels."""


class Box(NamedTuple):
    """A rectangle in pixels, y downwards."""

    left: float
    top: float
    right: float
    bottom: float

    def overlap(self, other: "Box") -> float:
        """Returns the area that two rectangles share."""
        width = min(self.right, other.right) - max(self.left, other.left)
        height = min(self.bottom, other.bottom) - max(self.top, other.top)
        return max(width, 0) * max(height, 0)

    @property
    def area(self) -> float:
        """Area in square pixels."""
        return (self.right - self.left) * (self.bottom - self.top)


def place(
    texts: Sequence[str],
    marks: Sequence[Sequence[Box]],
    drawn: Sequence[Box],
    size: tuple[int, int],
    written: Sequence[Box] = (),
) -> list[Label | None]:
    """Returns for each label its alignment (left, right, center) and offset from its point.

    The offset is (dx, dy). None means no room. The method is greedy: labels in turn take the
    position inside a plot of `size` that covers no other label and no point, and the smallest part
    of everything else.

    Args:
        texts: The labels.
        marks: What is drawn for each label's point; the first box is centred on the point.
        drawn: What else is drawn.
        size: Width and height of the plot.
        written: Boxes of text that is there already.
    """
    taken = [*drawn, *(box for boxes in marks for box in boxes)]
    points = [boxes[0] for boxes in marks]
    inside = Box(0, 0, *size)
    labels = list(written)
    result: list[tuple[str, float, float] | None] = []
    for text, boxes in zip(texts, marks, strict=True):
        x, y = (boxes[0].left + boxes[0].right) / 2, (boxes[0].top + boxes[0].bottom) / 2
        width = CHARACTER * len(text)
        candidates = []
        for rank, (align, dx, dy) in enumerate(_positions()):
            left = x + dx - {"left": 0, "center": width / 2, "right": width}[align]
            box = Box(left, y + dy - HEIGHT / 2, left + width, y + dy + HEIGHT / 2)
            if box.overlap(inside) < box.area or any(box.overlap(other) for other in labels + points):
                continue
            cost = sum(box.overlap(other) for other in taken) + 0.2 * rank
            candidates.append((cost, rank, box, (align, dx, dy)))
        if not candidates:
            result.append(None)
            continue
        _, _, box, position = min(candidates)
        taken.append(box)
        labels.append(box)
        result.append(position)
    return result


def _positions() -> list[tuple[str, float, float]]:
    sideways = [(align, dx, 0.0) for gap in (13.0, 24.0) for align, dx in (("left", gap), ("right", -gap))]
    near = [("center", 0.0, -18.0), ("center", 0.0, 18.0)]
    corners = [("left", 10.0, -15.0), ("right", -10.0, -15.0), ("left", 10.0, 15.0), ("right", -10.0, 15.0)]
    far = [(align, dx, dy) for dy in (-30.0, 30.0, -45.0, 45.0) for align, dx in (("left", 6.0), ("right", -6.0))]
    return sideways + near + corners + far
