"""Bodies of tests that run on the first node of a lab, in a job, and what they leave there."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tests.faults.bench import LabDouble
from tests.lab.cells import Machine
from tests.lab.cluster import NODES, Cluster
from tests.lab.job import HeldJob
from tests.polling import until
from tests.storage.provisioned import Case

PROGRAM = "tests.storage.spread"


@dataclass(frozen=True)
class Lab:
    """Four nodes held by one job, with the double of `beeond` on them."""

    job: HeldJob
    double: LabDouble
    machines: dict[str, Machine]

    def left(self) -> list[str]:
        """What is on the nodes and on the parallel file system besides what was there before."""
        found = [what for machine in self.machines.values() for what in machine.left()]
        return found + [str(path) for path in self.job.shared.glob("burstlab-*")]


@contextmanager
def four_nodes() -> Iterator[Lab]:
    """Up, and down whatever happens."""
    with Cluster() as cluster:
        cluster.must("up", "--nodes", "4", "--pfs-option", "metadata_latency_ms=0.2")
        double = LabDouble(cluster)
        try:
            job = HeldJob(cluster, 4)
            yield Lab(job, double, {name: Machine(cluster, name) for name in NODES})
        finally:
            double.close()


@dataclass(frozen=True)
class Elsewhere:
    """Stands for a storage that is provisioned there."""

    case: Case
    lab: Lab

    def run(self, body: str) -> None:
        """Run the body of a test there; fails as it does, or when it leaves anything."""
        doubled = self.case.storage == "beeond"  # its ssh is not that of the others
        variables = self.lab.double.variables() if doubled else {}
        done = self.lab.job.python(PROGRAM, body, str(self.case), variables=variables)
        assert done.returncode == 0, done.stdout
        try:
            until(lambda: not self.lab.left(), "nothing is left", limit_s=15)
        except AssertionError:
            raise AssertionError(f"left behind: {self.lab.left()}") from None
