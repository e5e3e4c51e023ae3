"""Copy the data set to every host of the cell by STAGING_METHOD: Serizawa and Tatebe, table 3.

What ``burstlab stage`` reports as a workload are the metrics.
"""

import os
import shlex
import sys
from pathlib import Path

environment = os.environ
hosts = Path(environment["BURSTLAB_HOSTFILE"]).read_text().split()
where = ["--hosts", ",".join(hosts), "--launch", environment["BURSTLAB_LAUNCH"]]
where += [f"--launch-option={w}" for w in shlex.split(environment["BURSTLAB_LAUNCH_OPTIONS"])]
if hosts[0] == "localhost":
    where = ["--virtual", "--nodes", str(len(hosts))]
words = ["stage", environment["BURSTLAB_MANIFEST"], f"{environment['BURSTLAB_LOCAL']}/data"]
words += ["--source", environment["BURSTLAB_DATA"]]
words += ["--method", environment.get("STAGING_METHOD", "copy"), *where]
os.execv(sys.executable, [sys.executable, "-m", "burstlab", *words])
