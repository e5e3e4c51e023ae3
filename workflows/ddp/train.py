"""One rank of a data-parallel training with PyTorch DDP; launch.py starts all of them."""

from torch_framework import TorchFramework

from burstlab.training import rank

if __name__ == "__main__":
    rank.main("ddp", TorchFramework)
