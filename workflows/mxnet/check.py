"""Did all ranks train the same network, on as many images?"""

import sys

from parameters import Parameters

from burstlab.training.launch import check

if __name__ == "__main__":
    sys.exit(check("mxnet", Parameters))
