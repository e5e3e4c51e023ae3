"""One rank of a data-parallel training with ChainerMN; launch.py starts all of them."""

from chainer_framework import ChainerFramework

from burstlab.training import rank

if __name__ == "__main__":
    rank.main("chainermn", ChainerFramework)
