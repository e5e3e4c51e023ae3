"""ChainerMN training as a workload of `burstlab run`: CHAINERMN_RANKS processes on each node."""

import sys
from pathlib import Path

from burstlab.training.launch import main

if __name__ == "__main__":
    sys.exit(main("chainermn", Path(__file__).resolve().with_name("train.py")))
