"""The order of a campaign's cells."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from burstlab.order import interleaved


def campaign(storages: list[str], nodes: list[int], repeats: int) -> list[str]:
    return [
        f"results/e/demo/montage/{storage}/n{count}/default/r{repeat}/record.json"
        for storage in storages
        for count in nodes
        for repeat in range(1, repeats + 1)
    ]


@given(st.integers(1, 4), st.integers(1, 5), st.integers(1, 12), st.integers())
def test_every_cell_once_repeats_in_blocks_storages_in_turns(
    storages: int, nodes: int, repeats: int, seed: int
) -> None:
    names = [f"s{number}-none" for number in range(storages)]
    records = campaign(names, list(range(1, nodes + 1)), repeats)
    order = interleaved(reversed(records), seed)
    assert sorted(order) == sorted(records)
    assert order == interleaved(records, seed), "it depends on the seed alone"
    blocks = [int(path.split("/")[-2][1:]) for path in order]
    assert blocks == sorted(blocks)
    for start in range(0, len(order), storages):
        turn = {path.split("/")[4] for path in order[start : start + storages]}
        assert turn == set(names), "each storage has its turn before one has its second"


def test_another_seed_is_another_order() -> None:
    records = campaign(["pfs-none", "gfarm-eager"], [1, 2, 4, 8], 3)
    orders = {tuple(interleaved(records, seed)) for seed in range(20)}
    assert len(orders) == 20
    first = [order[0].split("/")[4] for order in orders]
    assert set(first) == {"pfs-none", "gfarm-eager"}, "no storage is always the first"
    assert any(a != b for a, b in pairwise(first))
