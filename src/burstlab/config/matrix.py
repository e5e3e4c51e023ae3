"""A matrix of dimensions into points: products, zips and excludes. Pure functions."""

import itertools
from collections.abc import Iterator, Mapping, Sequence

from burstlab.config.load import allowed, wrong

Value = str | int | float | bool
Dimensions = Mapping[str, Sequence[Value]]
Point = dict[str, Value]


def expand(
    product: Dimensions,
    zips: Sequence[Dimensions] = (),
    excludes: Sequence[Dimensions] = (),
) -> list[Point]:
    """All points, the first dimension varying slowest.

    Every dimension of ``product`` is a factor; so is every group of ``zips``, whose dimensions
    advance together. An exclude gives values for some dimensions; a point that has one of them in
    each of these is left out. Raises PydanticCustomError with the key that is wrong.
    """
    dimensions = _dimensions(product, zips)
    factors = [[{name: value} for value in values] for name, values in product.items()]
    factors += [list(_together(number, group)) for number, group in enumerate(zips)]
    points = [dict(_merged(parts)) for parts in itertools.product(*factors)]
    for number, exclude in enumerate(excludes):
        for name in exclude:
            if name not in dimensions:
                raise wrong(
                    f"no such dimension{allowed(name, dimensions)}", at=f"exclude.{number}.{name}"
                )
        kept = [point for point in points if not _matches(point, exclude)]
        if len(kept) == len(points):
            told = ", ".join(f"{n}={'|'.join(map(text, values))}" for n, values in exclude.items())
            raise wrong(f"no point is left that has {told}", at=f"exclude.{number}")
        points = kept
    if not points:
        raise wrong("the matrix is empty: every point is excluded")
    return points


def text(value: Value) -> str:
    """A value as it is written in paths, labels and environment variables."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _dimensions(product: Dimensions, zips: Sequence[Dimensions]) -> list[str]:
    seen: dict[str, str] = {}
    places = [
        ("product", product),
        *((f"zip.{number}", group) for number, group in enumerate(zips)),
    ]
    for place, dimensions in places:
        for name, values in dimensions.items():
            at = f"{place}.{name}"
            if name in seen:
                raise wrong(f"this dimension is given in {seen[name]} already", at=at)
            seen[name] = place
            if not values:
                raise wrong("the matrix is empty: this dimension has no values", at=at)
    if not seen:
        raise wrong("the matrix is empty: neither product nor zip has a dimension")
    return list(seen)


def _together(number: int, group: Dimensions) -> Iterator[Point]:
    lengths = {name: len(values) for name, values in group.items()}
    if len(set(lengths.values())) != 1:
        told = ", ".join(f"{name} has {length}" for name, length in lengths.items())
        raise wrong(f"lists of one length are wanted: {told or 'none'}", at=f"zip.{number}")
    for values in zip(*group.values(), strict=True):
        yield dict(zip(group, values, strict=True))


def _merged(parts: Sequence[Point]) -> Iterator[tuple[str, Value]]:
    for part in parts:
        yield from part.items()


def _matches(point: Point, exclude: Dimensions) -> bool:
    """Compared as text: 1 and true are different values, 2 and "2" are not."""
    return all(
        text(point[name]) in [text(value) for value in values] for name, values in exclude.items()
    )
