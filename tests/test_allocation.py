"""Hosts from each scheduler's own words."""

import os
import socket
from pathlib import Path

import pytest

from burstlab.allocation import ORIGIN, allocate, as_allocated, own_address, own_name
from burstlab.errors import AllocationError


def test_pbs_names_a_host_once_however_many_processes(tmp_path: Path) -> None:
    # as `qsub -l select=2:ncpus=2:mpiprocs=2` writes it
    nodefile = tmp_path / "nodes"
    nodefile.write_text("pbs-n1\npbs-n1\npbs-n2\npbs-n2\n")
    found = allocate(None, environment={"PBS_NODEFILE": str(nodefile)})
    assert found.hosts == ("pbs-n1", "pbs-n2")
    assert found.origin == "PBS_NODEFILE"


def test_grid_engine_host_file_has_slots_and_queues(tmp_path: Path) -> None:
    hostfile = tmp_path / "pe_hostfile"
    hostfile.write_text("g0001 40 gpu@g0001 UNDEFINED\ng0002 40 gpu@g0002 UNDEFINED\n")
    assert allocate(None, environment={"PE_HOSTFILE": str(hostfile)}).hosts == ("g0001", "g0002")


def test_grid_engine_host_list_of_abci(tmp_path: Path) -> None:
    hostlist = tmp_path / "hosts"
    hostlist.write_text("g0001\ng0002\n")
    found = allocate(1, environment={"SGE_JOB_HOSTLIST": str(hostlist)})
    assert found.hosts == ("g0001",)


def test_slurm_node_list() -> None:
    environment = {"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "node[01-03,07]"}
    assert allocate(None, environment=environment).hosts == ("node01", "node02", "node03", "node07")


def test_slurm_step_on_one_node_asks_for_the_whole_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    squeue = tmp_path / "squeue"
    squeue.write_text(
        '#!/bin/sh\n[ "$*" = "--noheader --jobs 7 --format %N" ] && echo "node[1-2]"\n'
    )
    squeue.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    step = {"SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0", "SLURM_JOB_NODELIST": "node1"}
    assert allocate(2, environment=step).hosts == ("node1", "node2")


def test_a_given_list_comes_before_the_scheduler(tmp_path: Path) -> None:
    found = allocate(2, hosts="b[1-3]", environment={"PBS_NODEFILE": str(tmp_path / "missing")})
    assert found.hosts == ("b1", "b2")


def test_hosts_that_burstlab_passes_on_to_itself_keep_their_origin() -> None:
    assert allocate(None, "a,b", environment={}).origin == "--hosts"
    assert allocate(None, "a,b", environment={ORIGIN: "Slurm"}).origin == "Slurm"


def test_nested_node_sets() -> None:
    hosts = "n[1-4]"
    assert allocate(2, hosts=hosts).hosts == allocate(4, hosts=hosts).hosts[:2]


@pytest.mark.parametrize(
    ("name", "names", "spelled"),
    [
        ("n1.cluster.example", ["n1", "n2"], "n1"),
        ("n2", ["n1.cluster.example", "n2.cluster.example"], "n2.cluster.example"),
        ("n1.b", ["n1.a", "n1.b"], "n1.b"),
        ("n3", ["n1", "n2"], "n3"),
    ],
)
def test_a_host_is_named_as_the_allocation_spells_it(
    name: str, names: list[str], spelled: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert as_allocated(name, names) == spelled
    monkeypatch.setenv("SLURMD_NODENAME", name)
    assert own_name(names) == spelled


def test_virtual_nodes_are_this_machine_as_often_as_there_are_nodes() -> None:
    found = allocate(2, virtual=True, cores_per_node=1)
    assert found.hosts == ("node01", "node02")
    assert found.hostfile() == "localhost\nlocalhost\n"
    assert found.cores_per_node == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"nodes": 4, "hosts": "n1,n2"}, r"4 nodes asked for, 2 in --hosts \(n1, n2\)"),
        ({"nodes": 1, "hosts": "n[1-"}, r"host list 'n\[1-'"),
        (
            {"nodes": 1, "environment": {"PBS_NODEFILE": "/missing"}},
            "PBS_NODEFILE=/missing: No such",
        ),
        (
            {"nodes": None, "environment": {"PE_HOSTFILE": os.devnull}},
            "PE_HOSTFILE=/dev/null: the file names no host",
        ),
    ],
)
def test_bad_allocations_name_the_place_and_the_value(
    arguments: dict[str, object], said: str
) -> None:
    with pytest.raises(AllocationError, match=said):
        allocate(**arguments)  # type: ignore[arg-type]


def test_own_address_is_the_one_on_the_way_to_the_other() -> None:
    assert own_address("127.0.0.1", socket.AF_INET) == "127.0.0.1"


def test_a_host_without_a_way_is_named_with_the_reason() -> None:
    told = "^.* has no way to ::1: .+; let hosts find each other by the names that the allocation"
    with pytest.raises(AllocationError, match=told):
        own_address("::1", socket.AF_INET)
