"""What the lab writes into configuration files, and what it refuses to."""

from pathlib import Path

import pytest

from burstlab.errors import ConfigurationError
from lab import accounts, mounts, network
from lab.accounts import Account
from lab.layout import Lab

LAB = Lab(Path("/var/tmp/lab"), nodes=12)
PASSWD = "root:x:0:0:root:/root:/bin/bash\nalice:x:1000:1000::/home/alice:/bin/sh\n"


def test_names_and_addresses_are_distinct_and_in_hosts() -> None:
    lines = network.hosts_text(LAB).splitlines()
    assert "10.77.0.1 head" in lines
    assert "10.77.0.22 node12" in lines
    assert len({line.split()[0] for line in lines}) == len(lines) == 14


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"nodes": 0}, "--nodes 0"),
        ({"nodes": 100}, "--nodes 100"),
        ({"cores": 0}, "--cores 0"),
        ({"shape_mbit": -1}, "--shape-mbit -1"),
        ({"scheduler": "pbs"}, "slurm, gridengine"),
        ({"scheduler": "gridengine", "accounting": True}, "--accounting"),
        ({"directory": Path("/var/tmp/%n")}, "--directory /var/tmp/%n"),
    ],
)
def test_a_lab_that_can_not_be_is_refused(values: dict[str, object], said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        Lab(**{"directory": Path("/var/tmp/lab"), **values})  # type: ignore[arg-type]


def test_a_machine_the_lab_does_not_have_is_named() -> None:
    with pytest.raises(ConfigurationError, match=r"no machine 'node13'.*node12"):
        LAB.require("node13")


def test_nodes_have_processors_of_their_own_as_long_as_there_are_enough() -> None:
    lab = Lab(Path("/var/tmp/lab"), nodes=4, cores=2)
    bound = [lab.processors(node, [4, 5, 6, 7, 8, 9]) for node in lab.node_names]
    assert bound == [{4, 5}, {6, 7}, {8, 9}, {4, 5}]
    assert lab.processors("node03", [0]) == {0}
    assert lab.processors("head", [0, 1, 2]) == {0, 1, 2}


def test_own_user_is_added_once_and_the_hosts_users_stay() -> None:
    added = Account("lab", 20000, 20000, Path("/x"))
    text = accounts.passwd_text(PASSWD, added)
    assert text.startswith(PASSWD)
    assert text.splitlines()[2].startswith("lab:x:20000:20000:")
    assert accounts.passwd_text(text, added) == text
    alice = Account("alice", 1000, 1000, Path("/home/alice"))
    assert accounts.passwd_text(PASSWD, alice) == PASSWD


def test_nobody_is_locked_and_nobody_has_a_password() -> None:
    fields = [line.split(":") for line in accounts.shadow_text(PASSWD).splitlines()]
    assert [(name, password) for name, password, *_ in fields] == [("root", "*"), ("alice", "*")]


def test_a_group_of_the_host_is_not_made_twice() -> None:
    group = "users:x:1000:\n"
    assert accounts.group_text(group, Account("alice", 1000, 1000, Path("/"))) == group


def test_only_hidden_directories_are_carried_and_only_the_outermost() -> None:
    paths = [Path(p) for p in ("/tmp/a/b", "/tmp/a", "/var/tmp/c", "/usr/lib", "/tmp", "/tmpx")]
    assert mounts.carried(paths) == [Path("/tmp/a"), Path("/var/tmp/c")]


def test_blanks_in_fstab_are_escaped() -> None:
    assert mounts.fstab_line("/a b", "/c\td", "none", "bind") == "/a\\040b /c\\011d none bind 0 0\n"


def test_saved_lab_is_loaded_equal(tmp_path: Path) -> None:
    lab = Lab(tmp_path, nodes=3, shape_mbit=100, carry=("/tmp/x",))
    lab.save()
    assert Lab.load(tmp_path) == lab
    with pytest.raises(ConfigurationError, match="no lab in"):
        Lab.load(tmp_path / "none")
