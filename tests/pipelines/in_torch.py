"""What PyTorch's own Python checks: ``python -m tests.pipelines.in_torch CHECK DIRECTORY``.

Each function named check_* is a test of tests/pipelines/test_torch.py.
"""

import sys
from pathlib import Path
from typing import Any

from burstlab.pipelines import MODES, Options, open_pipeline
from tests.pipelines.small_set import COUNT, Numbered, make
from tests.polling import until


class Tensors(Numbered):
    """Examples of one size, to be collated."""

    def decode(self, index: int, content: Any) -> Any:
        array, label = super().decode(index, content)
        return array[:4], label


def made(directory: Path) -> Tensors:
    files = make(directory / "pfs")
    return Tensors(files.root, files.files)


def check_the_loader_gives_what_the_sampler_says(directory: Path) -> None:
    import torch
    from torch.utils.data import BatchSampler, RandomSampler

    from burstlab.pipelines.torch import loader

    files = made(directory)
    for mode in (mode for mode in MODES if mode != "ssd"):
        sampler = RandomSampler(files, generator=torch.Generator().manual_seed(1))
        generator = torch.Generator().manual_seed(1)
        options = Options(local=directory / mode, time_limit_s=60.0)
        with open_pipeline(mode, files, options) as pipeline:
            batches = loader(pipeline, BatchSampler(sampler, 8, drop_last=False))
            assert len(batches) == 7, mode
            for epoch in range(3):
                wanted = list(RandomSampler(files, generator=generator))
                labels = []
                for arrays, label in batches:
                    assert arrays.shape == (len(label), 4), mode
                    assert arrays[:, 0].tolist() == label.tolist(), mode
                    labels += label.tolist()
                    if epoch == 1:  # broken off
                        break
                assert labels == wanted[: 8 if epoch == 1 else COUNT], mode


def check_a_generator_is_left_as_by_any_other_loader(directory: Path) -> None:
    """Seeded before each epoch, and saved with a checkpoint after one."""
    import torch
    from torch.utils.data import BatchSampler, RandomSampler

    from burstlab.pipelines.torch import loader

    files = made(directory)
    generator, plain = torch.Generator(), torch.Generator()
    sampler = RandomSampler(files, generator=generator)
    with open_pipeline("direct", files, Options(time_limit_s=60.0)) as pipeline:
        batches = loader(pipeline, BatchSampler(sampler, 8, drop_last=False))
        for seed in (5, 6, None, None):
            if seed is not None:
                generator.manual_seed(seed)
                plain.manual_seed(seed)
            wanted = list(RandomSampler(files, generator=plain))
            assert [int(label) for _, labels in batches for label in labels] == wanted, seed
            assert torch.equal(generator.get_state(), plain.get_state()), seed


def check_the_next_epoch_is_read_before_this_one_ends(directory: Path) -> None:
    from torch.utils.data import BatchSampler, DistributedSampler

    from burstlab.pipelines.torch import loader

    files = made(directory)
    sampler = DistributedSampler(files, num_replicas=2, rank=0, seed=4)  # another half each time
    with open_pipeline("lazy", files, Options(time_limit_s=60.0)) as pipeline:
        taken = iter(loader(pipeline, BatchSampler(sampler, 8, drop_last=False)))
        next(taken)
        next(taken)
        until(lambda: pipeline.statistics()["source_opens"] > COUNT // 2, "the next epoch's files")


def check_ranks_of_a_distributed_sampler_share_an_agent(directory: Path) -> None:
    import burstio
    from torch.utils.data import BatchSampler, DistributedSampler

    from burstlab.pipelines.torch import loader

    files = made(directory)
    socket = directory / "agent" / "socket"
    for mode in ("direct", "lazy"):
        with burstio.Engine(files.root, files.files).serve(socket):
            seen: list[int] = []
            for rank in range(2):
                sampler = DistributedSampler(files, num_replicas=2, rank=rank, seed=4)
                sampler.set_epoch(1)
                own = Options(agent=socket if mode == "lazy" else None, time_limit_s=60.0)
                with open_pipeline(mode, files, own) as pipeline:
                    for _, label in loader(pipeline, BatchSampler(sampler, 8, drop_last=False)):
                        seen += label.tolist()
        assert sorted(seen) == list(range(COUNT)), mode


if __name__ == "__main__":
    globals()[sys.argv[1]](Path(sys.argv[2]))
