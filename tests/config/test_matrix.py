"""Properties of the expansion of a matrix."""

import itertools
import math
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from pydantic_core import PydanticCustomError

from burstlab.config.experiment import point_name
from burstlab.config.matrix import Dimensions, Point, expand, text

NAMES = [f"p{number}" for number in range(6)]
VALUES = st.one_of(st.integers(-3, 40), st.booleans(), st.sampled_from(["a", "b-c", "1.5"]))


def values(least: int = 1, most: int = 4) -> st.SearchStrategy[list[Any]]:
    """Values that are all different when they are written out."""
    return st.lists(VALUES, min_size=least, max_size=most, unique_by=text)


@st.composite
def matrices(draw: st.DrawFn) -> tuple[Dimensions, list[Dimensions]]:
    """A product and up to two zips, over different dimensions, at least one in all."""
    names = draw(st.permutations(NAMES))
    cuts = sorted(draw(st.lists(st.integers(1, len(names)), min_size=3, max_size=3)))
    product = {name: draw(values()) for name in names[: cuts[0]]}
    zips = []
    for start, end in itertools.pairwise(cuts):
        length = draw(st.integers(1, 4))
        zips.append({name: draw(values(length, length)) for name in names[start:end]})
    return product, [group for group in zips if group]


def written(points: list[Point]) -> list[str]:
    return [point_name("w", {"storage": "s", "staging": "t", "nodes": 1, **p}) for p in points]


@given(matrices())
def test_as_many_points_as_the_factors_make(matrix: tuple[Dimensions, list[Dimensions]]) -> None:
    product, zips = matrix
    points = expand(product, zips)
    lengths = [len(values) for values in product.values()]
    lengths += [len(next(iter(group.values()))) for group in zips]
    assert len(points) == math.prod(lengths)


@given(matrices())
def test_every_point_has_every_dimension_and_a_name_of_its_own(
    matrix: tuple[Dimensions, list[Dimensions]],
) -> None:
    product, zips = matrix
    points = expand(product, zips)
    names = {name for dimensions in (product, *zips) for name in dimensions}
    assert all(point.keys() == names for point in points)
    assert len(set(written(points))) == len(points)


@given(matrices())
def test_zipped_dimensions_advance_together(matrix: tuple[Dimensions, list[Dimensions]]) -> None:
    product, zips = matrix
    for group in zips:
        rows = [tuple(map(text, row)) for row in zip(*group.values(), strict=True)]
        for point in expand(product, zips):
            assert tuple(text(point[name]) for name in group) in rows


@given(matrices(), st.data())
def test_one_more_value_keeps_all_cells_and_their_names(
    matrix: tuple[Dimensions, list[Dimensions]], data: st.DataObject
) -> None:
    product, zips = matrix
    before = set(written(expand(product, zips)))
    name = data.draw(st.sampled_from(sorted(product)))
    more = data.draw(VALUES)
    assume(text(more) not in [text(value) for value in product[name]])
    after = set(written(expand({**product, name: [*product[name], more]}, zips)))
    assert before < after


@given(matrices(), st.data())
def test_an_exclude_takes_away_exactly_what_fits_it(
    matrix: tuple[Dimensions, list[Dimensions]], data: st.DataObject
) -> None:
    product, zips = matrix
    points = expand(product, zips)
    victim = data.draw(st.sampled_from(points))
    names = data.draw(st.lists(st.sampled_from(sorted(victim)), min_size=1, unique=True))
    exclude = {name: [victim[name]] for name in names}
    rest = [p for p in points if any(text(p[name]) != text(victim[name]) for name in names)]
    assume(rest)
    assert expand(product, zips, [exclude]) == rest


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (({},), "the matrix is empty: neither product nor zip has a dimension"),
        (({"a": []},), "the matrix is empty: this dimension has no values"),
        (({"a": [1]}, [{"a": [1]}]), "this dimension is given in product already"),
        (
            ({}, [{"a": [1, 2], "b": [1]}]),
            "lists of one length are wanted: a has 2, b has 1",
        ),
        (({"a": [1]}, [], [{"a": [1]}]), "the matrix is empty: every point is excluded"),
        (({"a": [1]}, [], [{"a": [2]}]), "no point is left that has a=2"),
        (({"a": [1, 2]}, [], [{"a": [1]}, {"a": [1]}]), "no point is left that has a=1"),
        (
            ({"nodes": [1, 2]}, [], [{"node": [1]}]),
            "no such dimension, did you mean 'nodes'? (allowed: nodes)",
        ),
    ],
)
def test_what_is_no_matrix(arguments: Any, problem: str) -> None:
    with pytest.raises(PydanticCustomError) as caught:
        expand(*arguments)
    assert caught.value.message() == problem


def test_a_truth_value_is_not_the_number_one() -> None:
    points = expand({"a": [1, True], "b": [0]}, excludes=[{"a": [True]}])
    assert points == [{"a": 1, "b": 0}]
    assert points[0]["a"] is not True
