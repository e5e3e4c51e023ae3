"""The texts that make Gfarm's daemons private, short-tempered and bound to this cell."""

from pathlib import Path

import pytest

from burstlab.storage.gfarm.configuration import Instance, files, mount_options

ALONE = Instance(Path("/scratch/cell/gfarm"), "alice", "localhost", 45678, "localhost")
MANY = Instance(Path("/scratch/cell/gfarm"), "alice", "node01", 45678, "node02")


def statements(text: str) -> dict[str, str]:
    """A configuration file as Gfarm reads it: one statement a line."""
    pairs = [line.split(" ", 1) for line in text.splitlines()]
    assert len(pairs) == len(dict(pairs)), "a statement is given twice"
    return dict(pairs)


@pytest.mark.parametrize("name", ["gfmd.conf", "gfsd.conf", "gfarm2.conf"])
def test_every_program_finds_the_same_server_and_the_same_key(name: str) -> None:
    found = statements(files(MANY)[name])
    assert found["metadb_server_host"] == "node01"
    assert found["metadb_server_port"] == "45678"
    assert found["shared_key_file"] == "/scratch/cell/gfarm/key"


def test_metadata_stay_in_memory() -> None:
    found = statements(files(ALONE)["gfmd.conf"])
    assert found["metadb_db_access_type"] == "none"
    assert found["metadb_replication"] == "disable"


def test_the_user_is_the_administrator_and_runs_the_daemons() -> None:
    assert statements(files(ALONE)["gfmd.conf"])["admin_user"] == "alice"
    assert files(ALONE)["usermap"].splitlines() == ["_gfarmfs alice", "_gfarmmd alice"]
    for name in ("gfmd.conf", "gfsd.conf"):
        assert statements(files(ALONE)[name])["local_user_map"] == "/scratch/cell/gfarm/usermap"


def test_on_one_host_nobody_else_may_even_try() -> None:
    assert statements(files(ALONE)["gfmd.conf"])["auth"] == "enable sharedsecret localhost"
    assert statements(files(MANY)["gfmd.conf"])["auth"] == "enable sharedsecret *"


@pytest.mark.parametrize("name", ["gfsd.conf", "gfarm2.conf"])
def test_nobody_waits_for_a_dead_server_as_long_as_by_default(name: str) -> None:
    defaults_s = {
        "no_file_system_node_timeout": 30,
        "gfmd_reconnection_timeout": 30,
        "gfmd_authentication_timeout": 35,
        "schedule_rpc_timeout": 35,
    }
    found = statements(files(ALONE)[name])
    assert all(int(found[key]) < default_s for key, default_s in defaults_s.items())


@pytest.mark.parametrize("name", ["gfmd.conf", "gfarm2.conf"])
def test_a_small_disk_takes_files_until_it_is_full(name: str) -> None:
    assert statements(files(ALONE)[name])["minimum_free_disk_space"] == "0"


def test_mmap_decides_how_it_is_mounted() -> None:
    assert mount_options(frozenset()) == "direct_io"
    assert mount_options({"shared"}) == "direct_io"
    assert mount_options({"shared", "mmap"}) == "big_writes"
