"""The PyTorch front end, where PyTorch is."""

from pathlib import Path
from typing import Any

import burstio
import pytest

from burstlab.pipelines import MODES, Options, open_pipeline
from tests.pipelines.small_set import COUNT, Numbered, make
from tests.polling import until

pytestmark = pytest.mark.requires("torch", "burstio")


class Tensors(Numbered):
    def decode(self, index: int, content: Any) -> Any:
        array, label = super().decode(index, content)
        return array[:4], label


@pytest.mark.parametrize("mode", [mode for mode in MODES if mode != "ssd"])
def test_the_loader_gives_what_the_sampler_says(mode: str, tmp_path: Path) -> None:
    import torch
    from torch.utils.data import BatchSampler, RandomSampler

    from burstlab.pipelines.torch import loader

    made = make(tmp_path / "pfs")
    files = Tensors(made.root, made.files)
    sampler = RandomSampler(files, generator=torch.Generator().manual_seed(1))
    generator = torch.Generator().manual_seed(1)
    options = Options(local=tmp_path / "local", time_limit_s=60.0)
    with open_pipeline(mode, files, options) as pipeline:
        batches = loader(pipeline, BatchSampler(sampler, 8, drop_last=False))
        assert len(batches) == 7
        for epoch in range(3):
            wanted = list(RandomSampler(files, generator=generator))
            labels = []
            for arrays, label in batches:
                assert arrays.shape == (len(label), 4)
                assert arrays[:, 0].tolist() == label.tolist()
                labels += label.tolist()
                if epoch == 1:  # broken off
                    break
            assert labels == wanted[: 8 if epoch == 1 else COUNT]


def test_the_next_epoch_is_read_before_this_one_ends(tmp_path: Path) -> None:
    from torch.utils.data import BatchSampler, DistributedSampler

    from burstlab.pipelines.torch import loader

    made = make(tmp_path / "pfs")
    files = Tensors(made.root, made.files)
    sampler = DistributedSampler(files, num_replicas=2, rank=0, seed=4)  # another half each time
    with open_pipeline("lazy", files, Options(time_limit_s=60.0)) as pipeline:
        batches = loader(pipeline, BatchSampler(sampler, 8, drop_last=False))
        taken = iter(batches)
        next(taken)
        next(taken)
        until(lambda: pipeline.statistics()["source_opens"] > COUNT // 2, "the next epoch's files")


@pytest.mark.parametrize("mode", ["direct", "lazy"])
def test_ranks_of_a_distributed_sampler_share_an_agent(mode: str, tmp_path: Path) -> None:
    from torch.utils.data import BatchSampler, DistributedSampler

    from burstlab.pipelines.torch import loader

    made = make(tmp_path / "pfs")
    files = Tensors(made.root, made.files)
    socket = tmp_path / "agent" / "socket"
    with burstio.Engine(files.root, files.files).serve(socket):
        seen: list[int] = []
        for rank in range(2):
            sampler = DistributedSampler(files, num_replicas=2, rank=rank, seed=4)
            sampler.set_epoch(1)
            agent = socket if mode == "lazy" else None
            with open_pipeline(mode, files, Options(agent=agent, time_limit_s=60.0)) as pipeline:
                for _, label in loader(pipeline, BatchSampler(sampler, 8, drop_last=False)):
                    seen += label.tolist()
    assert sorted(seen) == list(range(COUNT))
