"""The confidence region of two means together.

Hotelling's T-squared: Johnson and Wichern, "Applied Multivariate Statistical Analysis", section
5.4. If neighbouring runs are alike, the means of blocks are the samples, as in
`means.mean`.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

from headway.stats.means import block_means

LEVEL = 0.95
LEAST_BLOCKS = 5
"""With fewer blocks the region says nothing: with three its radius is 28 standard errors, with five
it is 5."""


class Ellipse(NamedTuple):
    """The points within `radius` of the means, in the metric of their covariance."""

    x: float
    y: float
    xx: float
    """Variance of the mean of x."""
    yy: float
    xy: float
    radius: float

    def outline(self, points: int = 48) -> list[tuple[float, float]]:
        """Returns points of its boundary, counter-clockwise, the first one again at the end."""
        # Cholesky's factor of the covariance maps the circle onto the ellipse.
        a = math.sqrt(self.xx)
        b = self.xy / a if a > 0 else 0.0
        c = math.sqrt(max(self.yy - b * b, 0.0))
        turns = (2 * math.pi * k / points for k in range(points + 1))
        circle = [(self.radius * math.cos(t), self.radius * math.sin(t)) for t in turns]
        return [(self.x + a * u, self.y + b * u + c * v) for u, v in circle]


def mean_ellipse(
    xs: Sequence[float], ys: Sequence[float], *, block: int = 1, level: float = LEVEL
) -> Ellipse | None:
    """Returns the confidence ellipse of the means of paired values.

    Args:
        xs: One finite number a run.
        ys: As many numbers.
        block: Neighbours that count as one sample, 1 to len(xs). If it is above 1, the values are
            in an order in which neighbours are alike.
        level: Coverage, in (0, 1).

    Returns:
        None if there are fewer than LEAST_BLOCKS blocks.
    """
    us, vs = _deviations(xs, block), _deviations(ys, block)
    n = len(us)
    if n < LEAST_BLOCKS:
        return None
    # From the covariance of the blocks to that of their mean.
    scale = 1 / (n * (n - 1))
    return Ellipse(
        math.fsum(xs) / len(xs),
        math.fsum(ys) / len(ys),
        xx=scale * math.fsum(u * u for u in us),
        yy=scale * math.fsum(v * v for v in vs),
        xy=scale * math.fsum(u * v for u, v in zip(us, vs, strict=True)),
        radius=math.sqrt(2 * (n - 1) / (n - 2) * _f_quantile(level, n - 2)),
    )


def _deviations(values: Sequence[float], block: int) -> list[float]:
    """Returns the difference of the mean of each block from the mean of these."""
    means = block_means(values, block)
    centre = math.fsum(means) / len(means)
    return [one - centre for one in means]


def _f_quantile(level: float, m: int) -> float:
    """Returns the quantile of the F distribution with 2 and m degrees of freedom.

    Its tail is (1 + 2x/m)^(-m/2).
    """
    return m / 2 * (math.pow(1 - level, -2 / m) - 1)
