"""Whose the processor time was."""

import subprocess
import sys
from pathlib import Path

from burstlab.provenance import CpuUse

BURN = "import time\nend = time.process_time() + 0.4\nwhile time.process_time() < end: pass"


def test_what_a_stranger_burns_is_told_apart_from_what_a_child_burns() -> None:
    """The stranger is a child that is not waited for yet."""
    quiet = CpuUse()
    subprocess.run([sys.executable, "-c", BURN], check=True)
    with_child = quiet.share_of_others()
    use = CpuUse()
    stranger = subprocess.Popen([sys.executable, "-c", BURN + "\ninput()"], stdin=subprocess.PIPE)
    while True:
        stat = Path(f"/proc/{stranger.pid}/stat").read_text()
        if sum(map(int, stat.rsplit(")", 1)[1].split()[11:13])) >= 20:
            break
    alone = use.share_of_others()
    stranger.communicate()
    assert alone > 0.05
    assert with_child >= 0.0
