"""Gfarm over several hosts, as cells on a lab's nodes: where files lie, what is told of a loss."""

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.lab.cluster import NODES, Cluster
from tests.storage.gfarm.many import SHARED, Many

pytestmark = [pytest.mark.requires("root", "netns", "lab", "gfarm", "fuse"), pytest.mark.slow]

SMALL_DISK = "/local/disk"  # a directory on every node, and a disk of 6 MB on the second


@pytest.fixture(scope="module")
def lab() -> Iterator[Cluster]:
    with Cluster() as cluster:
        cluster.must("up", "--nodes", "4")
        yield cluster


@pytest.fixture
def many(lab: Cluster) -> Iterator[Many]:
    """Cells on the lab's nodes, which leave nothing there."""
    many = Many(lab)
    yield many
    many.nothing_left()


@pytest.fixture
def small_disk(many: Many) -> Iterator[str]:
    """A base of node-local scratch that is a disk of its own, and small, on the second node."""
    for node in NODES:
        many.must(node, "mkdir", "-m", "777", SMALL_DISK)
    disk = ("mount", "-t", "tmpfs", "-o", "size=6m,mode=777", "small", SMALL_DISK)
    many.must(NODES[1], *disk)
    yield SMALL_DISK
    many.must(NODES[1], "umount", SMALL_DISK)
    for node in NODES:
        many.must(node, "rmdir", SMALL_DISK)


WRITE_HERE = """
mkdir "$BURSTLAB_MOUNT/$(hostname)"; cd "$BURSTLAB_MOUNT/$(hostname)"
for file in 1 2 3 4 5; do head -c 100000 /dev/urandom >$file; gfwhere $file; done
find "$BURSTLAB_LOCAL/gfarm/spool/data" -type f -size +50k | wc -l
"""


def test_what_a_host_writes_lies_on_its_own_disk(many: Many) -> None:
    ended = many.run_on_all(WRITE_HERE)
    assert ended.record["status"] == "ok", ended.said
    for node in NODES:
        assert ended.told[node].split() == [*[node] * 5, "5"]


READ_BY_COMMANDS = """
here=$(hostname) there=$(grep -A1 -x "$(hostname)" "$BURSTLAB_CELL_DIR/hostfile" | tail -1)
[ "$there" != "$here" ] || there=$(head -1 "$BURSTLAB_CELL_DIR/hostfile")
stat -c %a "$(dirname "$GFARM_CONFIG_FILE")/key"
cd "$BURSTLAB_LOCAL"
head -c 300000 /dev/urandom >mine
cp mine "$BURSTLAB_MOUNT/of-$here"
gfls "$BURSTLAB_MOUNT/of-$here" | sed 's:.*/::'
gfwhere "$BURSTLAB_MOUNT/of-$here"
gfexport "$BURSTLAB_MOUNT/of-$here" >exported
cmp exported mine
until [ -e "$BURSTLAB_MOUNT/of-$there" ]; do sleep 0.05; done
gfwhere "$BURSTLAB_MOUNT/of-$there"
mkdir copied
gfpcopy -B -q "$BURSTLAB_MOUNT/of-$there" "file://$BURSTLAB_LOCAL/copied"
cmp copied/of-$there "$BURSTLAB_MOUNT/of-$there"
"""


def test_gfarms_commands_work_on_every_host(many: Many) -> None:
    ended = many.run_on_all(READ_BY_COMMANDS)
    assert ended.record["status"] == "ok", (ended.said, ended.told)
    for node, neighbour in zip(NODES, (*NODES[1:], NODES[0]), strict=True):
        assert ended.told[node].split() == ["600", f"of-{node}", node, neighbour]


SIZES = {f"{number % 3}/file {number}": 1000 * number for number in range(40)} | {"big": 5_000_000}
COMPARE = """
cd "$BURSTLAB_DATA"
find . -type f -exec sha256sum {} + | sort >"$BURSTLAB_LOCAL/seen"
cmp "$BURSTLAB_LOCAL/seen" SUMS
find "$BURSTLAB_LOCAL/gfarm/spool/data" -type f -size +0 | wc -l
"""


@pytest.mark.parametrize("way", ["mounts", "gfpcopy"])
def test_a_data_set_is_spread_over_the_hosts_whole(many: Many, way: str) -> None:
    manifest = many.data_set(f"set-{way}", SIZES)
    root = many.backing / f"set-{way}"
    listing = ["sh", "-c", "find . -type f -exec sha256sum {} + | sort"]
    (many.backing / f"sums-{way}").write_bytes(subprocess.check_output(listing, cwd=root))
    ended = many.run_on_all(
        COMPARE.replace("SUMS", str(SHARED / f"sums-{way}")),
        *("--dataset", manifest, "--staging", "eager", "-o", f"stage_in={way}"),
    )
    assert ended.record["status"] == "ok", (ended.said, ended.told)
    told = ended.record["dataset"]["staged"]
    assert (told["method"], told["hosts"]) == (way, 4)
    assert list(told["phases"]) == [{"mounts": "copy"}.get(way, way), "compare"]
    held = [int(ended.told[node]) for node in NODES]
    assert sum(held) == 40 and min(held) > 0
    if way == "mounts":
        assert max(held) - min(held) <= 1


@pytest.mark.parametrize("way", ["mounts", "gfpcopy"])
def test_a_file_that_is_not_what_it_was_is_named(many: Many, way: str) -> None:
    manifest = many.data_set(f"bad-{way}", SIZES)
    victim = many.backing / f"bad-{way}" / "1/file 7"
    written = victim.stat().st_mtime_ns
    victim.write_bytes(b"x" * 7000)
    os.utime(victim, ns=(written, written))  # or it were told before anything starts
    ended = many.run("true", "--dataset", manifest, "--staging", "eager", "-o", f"stage_in={way}")
    assert (ended.status, ended.record["status"]) == (123, "failed"), ended.said
    assert "file 7" in ended.record["reason"]
    assert "another checksum" in ended.record["reason"]


def test_gfpcopy_refuses_what_is_not_of_the_data_set(many: Many) -> None:
    manifest = many.data_set("more", {"a": 10})
    (many.backing / "more" / ".hidden").write_text("x")
    ended = many.run("true", "--dataset", manifest, "--staging", "eager", "-o", "stage_in=gfpcopy")
    assert ended.status == 123
    assert ".hidden is not of the data set" in ended.record["reason"]


FILL = 'ssh -n node02 "head -c 9000000 /dev/zero >$BURSTLAB_MOUNT/big"'


def test_a_full_disk_of_one_host_is_named(many: Many, small_disk: str) -> None:
    ended = many.run(FILL, local=small_disk)
    assert (ended.status, ended.record["status"]) == (122, "failed"), ended.said
    assert "node02: " in ended.record["reason"]
    assert f"{small_disk} (small, tmpfs)" in ended.record["reason"]
    assert "No space left on device" in ended.log


WRITE_IN_VAIN = """
[ "$(hostname)" = node02 ] || exit 0
exec 3>"$BURSTLAB_MOUNT/lost"
echo one >&3
for process in /proc/[0-9]*; do
    case "$(readlink $process/cwd) $(tr '\\0' ' ' <$process/cmdline)" in
        "$BURSTLAB_LOCAL/gfarm/spool gfsd: c"*) workers="${workers:-} ${process#/proc/}" ;;
    esac
done 2>/dev/null
kill -9 $workers && echo killed  # at once: a cell that has noticed ends this very shell
echo two >&3 && exec 3>&- && echo written
"""


def test_a_file_written_in_vain_on_another_host_fails_the_cell(many: Many) -> None:
    ended = many.run_on_all(WRITE_IN_VAIN)
    assert set(ended.told["node02"].split()) == {"killed", "written"}, "no error is seen there"
    assert (ended.status, ended.record["status"]) == (122, "failed"), ended.said
    assert "data lost: " in ended.record["reason"]
    assert "node02" in ended.record["reason"]


def test_a_host_without_its_disk_is_named_and_the_others_are_taken_down(many: Many) -> None:
    nowhere = "/local/only-here"
    for node in (*NODES[:2], NODES[3]):
        many.must(node, "mkdir", "-m", "777", nowhere)
    try:
        ended = many.run("true", local=nowhere)
        assert ended.record["status"] == "failed"
        assert ended.record["reason"].startswith("node03: "), ended.record["reason"]
        assert nowhere in ended.record["reason"]
    finally:
        for node in (*NODES[:2], NODES[3]):
            many.must(node, "rmdir", nowhere)


def test_a_host_whose_disk_is_full_at_the_start_is_named(many: Many, small_disk: str) -> None:
    many.must("node02", "sh", "-c", f"head -c 9000000 /dev/zero >{small_disk}/theirs || true")
    ended = many.run("true", local=small_disk)
    assert (ended.status, ended.record["status"]) == (122, "failed"), ended.said
    assert ended.record["reason"].startswith("node02: "), ended.record["reason"]
    assert small_disk in ended.record["reason"]
    assert "No space left on device" in ended.record["reason"]


BY_GFARMBB = ("-o", "launcher=gfarmbb")


def test_gfarmbb_starts_it_on_every_host(many: Many) -> None:
    manifest = many.data_set("gfarmbb", SIZES)
    ended = many.run_on_all(
        f'{WRITE_HERE}\nls "$BURSTLAB_DATA" | wc -l', *BY_GFARMBB, "-o", "stage_in=gfpcopy",
        *("--dataset", manifest, "--staging", "eager"),
    )  # fmt: skip
    assert ended.record["status"] == "ok", (ended.said, ended.told)
    assert ended.record["storage"]["launcher"] == "gfarmbb"
    assert not [what for what in ended.record["issues"] if "teardown" in what or "left" in what]
    for node in NODES:
        *where, files, entries = ended.told[node].split()
        assert (where, entries) == ([node] * 5, "4")
        assert int(files) >= 5


def test_gfarmbb_names_the_host_where_its_port_is_taken(many: Many) -> None:
    taken = "import socket, time; s = socket.create_server(('', 10600)); print(1); time.sleep(60)"
    command = many.on("node03", sys.executable, "-uc", taken)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline()
        ended = many.run("true", *BY_GFARMBB)
        other.terminate()
    assert (ended.status, ended.record["status"]) == (122, "failed"), ended.said
    assert ended.record["reason"].startswith("node03: port 10600 is in use")


@pytest.mark.parametrize("daemon", ["gfmd", "gfsd", "gfarm2fs"])
def test_the_death_of_a_daemon_of_gfarmbb_is_told(many: Many, daemon: str) -> None:
    node = "node01" if daemon == "gfmd" else "node02"
    ended = many.run(f"ssh -n {node} pkill -9 -o -x {daemon}; sleep 60", *BY_GFARMBB)
    assert (ended.status, ended.record["status"]) == (122, "failed"), ended.said
    assert f"{node}: {daemon} died" in ended.record["reason"]
