"""A lab with slurmdbd answers sacct."""

import pytest

from tests.lab.cluster import Cluster
from tests.polling import until

pytestmark = pytest.mark.requires("root", "netns", "lab", "lab-accounting")


@pytest.mark.slow
def test_sacct_knows_how_a_job_ended_and_where_also_after_the_head_was_lost(own: Cluster) -> None:
    own.must("up", "--accounting", "--nodes", "2")
    own.lab("exec", "--user", "lab", "head", "--", "srun", "-w", "node02", "sh", "-c", "exit 3")
    expected = "FAILED|3:0|node02|lab"

    def recorded() -> bool:
        words = ("sacct", "-nXP", "-o", "State,ExitCode,NodeList,User")
        return own.run("head", *words).strip() == expected

    until(recorded, "sacct shows the job")
    own.must("kill", "head")
    own.must("start", "head")
    until(recorded, "slurmdbd kept it")
