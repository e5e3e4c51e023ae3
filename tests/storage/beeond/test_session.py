"""Command lines for `beeond`, and what is read from its answers."""

from pathlib import Path

import pytest

from burstlab.lease import Lease
from burstlab.nodes import Host
from burstlab.pfs.site import MountedPfs
from burstlab.storage.beeond import BeeondStorage
from burstlab.storage.beeond.session import Session, errors, lost
from burstlab.storage.interface import Context

CAPTURES = Path(__file__).parent / "captures"


def session(**changes: object) -> Session:
    base = {
        "program": "/usr/bin/beeond",
        "prefix": (),
        "hosts": ("n1", "n2"),
        "status": "/var/tmp/s",
        "data": "/scr/d",
        "logs": "/scr/l",
        "mount": "/scr/m",
        "nodes": "/scr/n",
    }
    return Session(**{**base, **changes})  # type: ignore[arg-type]


def test_a_start_as_the_manual_has_it() -> None:
    words = session(prefix=("sudo", "-n"), pdsh=True).start("/etc/beegfs", 1, 0, ["-C"])
    assert " ".join(words) == (
        "sudo -n /usr/bin/beeond start -n /scr/n -d /scr/d -c /scr/m -i /var/tmp/s -L /scr/l "
        "-m 1 -f /etc/beegfs -P -C"
    )


def test_what_looks_at_f_comes_after_it() -> None:
    words = session().start("/conf", 2, 4, ["-C", "-E", "-H"])
    assert all(words.index("-f") < words.index(late) for late in ("-C", "-E", "-H"))
    assert words[words.index("-s") + 1] == "4"


def test_a_stop_names_everything() -> None:
    assert session().stop()[2:] == ["-n", "/scr/n", "-i", "/var/tmp/s", "-L", "-d", "-c"]


def test_it_survives_a_journal() -> None:
    assert Session.of_json(session().as_json()) == session()


@pytest.mark.parametrize(
    ("capture", "expected"),
    [
        (
            "B-start.err",
            ["Error: Could not open mtab.", "Unable to start beegfs-meta on host: node1"],
        ),
        ("I1-stop-nodegone.err", ["Host is unreachable via ssh: node2"]),
        ("D-start.out", []),
        (
            "J1-stop-rebooted.out",
            [
                "There was a problem unmounting the ondemand file system on host node2",
                "PID file /var/run/beegfs-storage-20261120-200731.pid does not exist on host node2",
                "PID file /var/run/beegfs-helperd-20261120-200731.pid does not exist on host node2",
            ],
        ),
    ],
)
def test_errors_are_found_in_both_streams(capture: str, expected: list[str]) -> None:
    assert errors((CAPTURES / capture).read_text()) == expected


def test_one_complaint_said_a_hundred_times_is_one() -> None:
    assert len(errors((CAPTURES / "C-start.err").read_text())) == 1


def test_who_is_lost_is_named() -> None:
    said = (CAPTURES / "I1-stop-nodegone.err").read_text()
    assert lost(said, ["node1", "node2", "node20"]) == ["node2"]
    assert lost((CAPTURES / "F-stop.out").read_text(), ["node1", "node2"]) == []


@pytest.mark.parametrize("bad", ["/scr/a b", "/scr/$(id)", "/scr/a,b", "/scr/'"])
def test_paths_its_script_would_take_apart_are_refused(bad: str) -> None:
    assert repr(bad) in session(data=bad).unfit()
    assert session().unfit() == ""


class Listed:
    """Hosts as an allocation may name them."""

    directory = Path("/scr/burstlab-x.node")
    hosts = tuple(Host(name, Path("/scr/burstlab-x.node")) for name in ("n1", "n2", "n1"))


def test_each_host_is_listed_once(tmp_path: Path) -> None:
    held = Lease.create("listed")
    context = Context("x", Listed.directory, Listed(), held, MountedPfs(tmp_path, "x", held),
                      frozenset(), 0.0)  # type: ignore[arg-type]  # fmt: skip
    assert BeeondStorage(BeeondStorage.Options(), context)._session.hosts == ("n1", "n2")
    held.release()
