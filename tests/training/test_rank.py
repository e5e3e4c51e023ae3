"""How a rank ends that can't go on."""

import os
import subprocess
import sys

ALONE = """
from burstlab.training import rank

def train():
    raise rank.Deserted("connection closed\\nby a peer")

rank.FIRST_WORDS_S = 0.0
rank.guarded("ddp", train)
"""


def test_what_failed_together_is_not_said_to_be_anothers_death() -> None:
    done = subprocess.run(
        [sys.executable, "-c", ALONE],
        env={**os.environ, "OMPI_COMM_WORLD_RANK": "1", "BURSTLAB_HOST": "node02"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    told = "what all ranks do together failed here: connection closed"
    assert (done.returncode, done.stderr) == (1, f"ddp: rank 1 on node02: {told}\n")
