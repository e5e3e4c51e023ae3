"""``python3 -m tools.setup [clean] [--parts "NAME ..."]``, from the top of the checkout.

This file must parse on any Python 3, to say which one is needed; the rest needs 3.11.
"""

import os
import shutil
import sys

OLDEST = (3, 11)


def _newer_python():
    # type: () -> str | None
    names = ["python3"] + ["python3.%d" % minor for minor in range(20, OLDEST[1] - 1, -1)]
    found = [shutil.which(name) for name in names]
    test = "import sys; sys.exit(sys.version_info < %r)" % (OLDEST,)
    for path in found:
        if path and os.spawnl(os.P_WAIT, path, path, "-c", test) == 0:
            return path
    return None


if sys.version_info < OLDEST:
    python = _newer_python()
    if python is not None:
        os.execv(python, [python, "-m", "tools.setup"] + sys.argv[1:])
    sys.stderr.write(
        "setup: Python %d.%d is too old and no Python >= %d.%d is on PATH. Three ways to get one:\n"
        "  apt      apt-get install python3 python3-venv   (Debian 12 or newer)\n"
        "  conda    conda env create --file envs/setup/conda.yaml && conda activate burstlab\n"
        "  modules  module avail python, then module load the newest\n"
        "and run make again.\n" % (sys.version_info[:2] + OLDEST)
    )
    sys.exit(4)

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "src"))

from tools.setup.command import main  # noqa: E402

sys.exit(main(sys.argv[1:]))
