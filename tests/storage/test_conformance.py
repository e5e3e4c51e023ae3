"""Every storage, provisioned for real, keeps what the interface promises.

What programs may expect of the files is in ``conformance.py``. Where a case has a launcher, the
body of a test runs on the first of a lab's nodes, in a job (``conftest.py``, ``spread.py``).
"""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

import pytest

from burstlab.errors import BurstlabError
from burstlab.mounts import mount_of
from burstlab.storage import STORAGES
from tests.faults.bench import AS_ROOT
from tests.polling import until
from tests.storage.beeond.cluster import SERVICES, Double
from tests.storage.elsewhere import Elsewhere
from tests.storage.gfarm.alone import only_gfarmbb
from tests.storage.provisioned import PROVIDED, Case, Provisioned

GFARM = ("gfarm", "fuse")
BEEOND = ("root", "beeond")  # the double of its command; the files lie in a tmpfs


def beeond(root: Path) -> dict[str, Any]:
    """Of BeeGFS 7, whose daemons want a configuration."""
    conf = root / "conf"
    conf.mkdir(exist_ok=True)
    for service in (*SERVICES, "client"):
        (conf / f"beegfs-{service}.conf").write_text("connDisableAuthentication = true\n")
    return {"conf": str(conf)}


def provided(root: Path) -> dict[str, Any]:
    """A directory that is there before the cell."""
    path = root / PROVIDED
    path.mkdir(exist_ok=True)
    return {"path": str(path), "type": mount_of(path).type}


def by_gfarmbb(root: Path) -> dict[str, Any]:
    """Started by Gfarm's own command."""
    return {"launcher": "gfarmbb"}


CASES = [
    Case("pfs"),
    Case("pfs", emulated_pfs=True, needs=frozenset({"mmap", "shared"}), requires=("fuse",)),
    Case("pfs", nodes=2, emulated_pfs=True, requires=("fuse",)),
    Case("nodelocal", needs=frozenset({"mmap"})),
    Case("nodelocal", nodes=2),
    Case("gfarm", requires=GFARM),
    Case("gfarm", needs=frozenset({"mmap", "shared"}), requires=GFARM),
    Case("gfarm", way="gfarmbb", requires=GFARM, options=by_gfarmbb),
    Case("beeond", requires=BEEOND, options=beeond),
    Case("provided", options=provided),
    Case("provided", nodes=2, needs=frozenset({"shared"}), options=provided),
]


def beeond_on_a_lab(_: Path) -> dict[str, Any]:
    """By an ordinary user."""
    return {"conf": f"{os.environ['BEEOND_DOUBLE']}/conf", "prefix": AS_ROOT}


ON_A_LAB = ("root", "netns", "lab", "ssh", "fuse")
CASES += [
    Case(storage, nodes, launch=launch, requires=(*ON_A_LAB, *requires))
    for storage, requires in {"pfs": (), "nodelocal": (), "gfarm": GFARM}.items()
    for nodes, launch in ((2, "srun"), (4, "ssh"))
]
CASES += [
    Case("gfarm", 4, way="gfarmbb", launch="ssh", requires=(*ON_A_LAB, *GFARM), options=by_gfarmbb)
]
CASES += [
    Case("beeond", nodes, launch="srun", requires=(*ON_A_LAB, *BEEOND), options=beeond_on_a_lab)
    for nodes in (2, 4)
]
REFUSED = [
    Case("nodelocal", nodes=2, needs=frozenset({"shared"})),
    Case("gfarm", nodes=2, requires=GFARM),
    Case("gfarm", way="gfarmbb", needs=frozenset({"mmap"}), requires=GFARM, options=by_gfarmbb),
    Case("beeond", nodes=2, requires=BEEOND, options=beeond),
    Case("provided"),
]
# What a host takes only one of says so to the second.
ALONE = {"gfarmbb": "port 1060[01] is in use"}  # of gfsd, of gfmd
# What a storage is known not to have. A check that passes all the same makes its test fail.
LACKS = {"gfarm": {"a_file_is_usable_after_unlink": "gfarm2fs: a write after unlink is ENOENT"}}


def parameters(cases: list[Case]) -> list[object]:
    """The first of each storage is of the everyday loop."""
    marks = {case: [pytest.mark.requires(*case.requires)] for case in cases}
    first = {case.storage: case for case in reversed(cases)}
    for case in cases:
        if case is not first[case.storage]:
            marks[case].append(pytest.mark.slow)
    return [pytest.param(case, id=str(case), marks=marks[case]) for case in cases]


def provision(case: Case, root: Path, identifier: str) -> Provisioned:
    from tests.storage.spread import Spread

    return (Spread if case.launch else Provisioned)(case, root, identifier)


@contextmanager
def cell(case: Case, root: Path, identifier: str = "fresh") -> Iterator[Provisioned]:
    """A provisioned storage, not started; taken down and looked after whatever happens."""
    provisioned = provision(case, root, identifier)
    try:
        yield provisioned
    finally:
        left = provisioned.stop() if provisioned.lease.journal.exists() else []
        assert left == [] and provisioned.remains() == []


@pytest.fixture(autouse=True)
def double(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """The double of `beeond`, where it is called: its only host is this machine."""
    case = getattr(request.node, "callspec", None)
    cases = [] if case is None else cases_of(case.params)
    if not any(of.storage == "beeond" and not of.launch for of in cases):
        yield
        return
    programs = Double(tmp_path / "double")
    programs.switch.hosts[os.uname().nodename] = os.getpid()
    for name, value in programs.environment().items():
        monkeypatch.setenv(name, value)
    yield
    programs.close()


def cases_of(params: dict[str, object]) -> list[Case]:
    return [value for value in params.values() if isinstance(value, Case)]


@pytest.fixture(params=parameters(CASES))
def fresh(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Provisioned | Elsewhere]:
    """A storage not started yet, this test's own."""
    if request.param.launch:
        yield Elsewhere(request.param, request.getfixturevalue("lab"))
        return
    alone = only_gfarmbb() if request.param.way == "gfarmbb" else nullcontext()
    with alone, cell(request.param, tmp_path) as provisioned:
        yield provisioned


def test_every_storage_is_here() -> None:
    # BeeOND wants a kernel module: tests/storage/beeond holds it to what is known of the real one.
    assert {case.storage for case in CASES} == set(STORAGES)


def test_it_starts_empty_on_every_host(fresh: Provisioned) -> None:
    assert fresh.storage.unavailable() is None
    fresh.start()
    hosts = fresh.nodes.hosts
    assert [fresh.names(host) for host in hosts] == [[]] * len(hosts)
    for host in hosts:
        fresh.write(host, "file", "writable")
    assert fresh.storage.problems() == []


def test_programs_find_what_they_expect(fresh: Provisioned) -> None:
    fresh.start()
    failed = fresh.check()
    lacks = LACKS.get(fresh.case.storage, {})
    unexpected = [told for name, told in failed.items() if name not in lacks]
    assert not unexpected, "\n".join(unexpected)
    assert set(failed) == set(lacks), "it has what LACKS says it has not"
    assert fresh.supervisor.deaths() + fresh.storage.problems() == []
    fresh.supervisor.call(fresh.storage.drain)
    assert fresh.supervisor.call(fresh.storage.verify) == []


def test_hosts_see_each_others_files_where_the_storage_is_shared(fresh: Provisioned) -> None:
    fresh.start()
    hosts = fresh.nodes.hosts
    for host in hosts:
        fresh.write(host, f"of-{host.name}", host.name)
    for host in hosts:
        seen = {*fresh.names(host)}
        everybody = {f"of-{other.name}" for other in hosts}
        assert seen == (everybody if fresh.storage.shared else {f"of-{host.name}"})


def test_its_description_is_for_a_record(fresh: Provisioned) -> None:
    fresh.start()
    told = dict(fresh.storage.describe())
    assert json.loads(json.dumps(told)) == told and told["type"]


def test_it_is_gone_after_stop_and_can_be_stopped_again(fresh: Provisioned) -> None:
    fresh.start()
    for host in fresh.nodes.hosts:
        fresh.write(host, "file", "x" * 100_000)
    fresh.storage.stop()
    fresh.storage.stop()
    assert (left := fresh.stop() + fresh.remains()) == [], left
    fresh.pfs.stop()
    assert fresh.remains() == []


def test_it_stops_though_a_program_still_works_in_it(fresh: Provisioned) -> None:
    fresh.start()
    file = os.open(fresh.storage.mount / "file", os.O_WRONLY | os.O_CREAT)
    os.write(file, b"x")
    assert (left := fresh.stop() + fresh.remains()) == [], left
    with suppress(OSError):  # its file system is gone
        os.close(file)


def test_the_next_one_of_the_same_name_starts_in_the_same_place(fresh: Provisioned) -> None:
    fresh.start()
    (fresh.storage.mount / "old").write_text("old")
    assert (left := fresh.stop()) == [], left
    with cell(fresh.case, fresh.root, fresh.lease.id) as again:
        again.start()
        assert list(again.storage.mount.iterdir()) == []


def test_two_live_side_by_side(fresh: Provisioned) -> None:
    fresh.start()
    with cell(fresh.case, fresh.root, "neighbour") as neighbour:
        if told := ALONE.get(fresh.case.way):
            neighbour.pfs.start(neighbour.supervisor)
            with pytest.raises(BurstlabError, match=told):
                neighbour.storage.start()
            return
        neighbour.start()
        (neighbour.storage.mount / "file").write_text("neighbour")
        assert list(fresh.storage.mount.iterdir()) == []
        (fresh.storage.mount / "file").write_text("first")
        assert (neighbour.storage.mount / "file").read_text() == "neighbour"
    assert (fresh.storage.mount / "file").read_text() == "first"
    assert fresh.supervisor.deaths() + fresh.storage.problems() == []


def test_it_can_be_stopped_before_it_was_started(fresh: Provisioned) -> None:
    fresh.storage.stop()
    assert (left := fresh.stop()) == [], left


def test_a_start_that_fails_says_so_and_leaves_nothing(fresh: Provisioned) -> None:
    fresh.pfs.start(fresh.supervisor)
    fresh.ruin()
    with pytest.raises((BurstlabError, OSError), match=r"No such file|not there"):
        fresh.storage.start()
    assert (left := fresh.stop()) == [], left
    assert (left := fresh.remains()) == [], left


def test_a_daemon_that_dies_is_noticed(fresh: Provisioned) -> None:
    fresh.start()
    for host, name in fresh.daemons():
        fresh.kill(host, name)
        until(lambda name=name: any(name in death for death in fresh.wrong()), f"{name} is missed")


@pytest.mark.parametrize("case", parameters(REFUSED))
def test_what_it_can_not_serve_it_refuses_in_a_sentence(case: Case, tmp_path: Path) -> None:
    with cell(case, tmp_path) as refused:
        told = refused.storage.unavailable()
        assert told and "\n" not in told and refused.holds()
