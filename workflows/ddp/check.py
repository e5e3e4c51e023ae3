"""Did all ranks train the same network, to the end?"""

import sys

from burstlab.training.launch import check

if __name__ == "__main__":
    sys.exit(check("ddp"))
