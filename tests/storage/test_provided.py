"""A burst buffer that was there before the cell: it is what it is said to be, and stays so."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from burstlab.mounts import mount_of
from burstlab.storage.provided import MAGIC, expand, unfit
from burstlab.storage.stripes import _BEEGFS, _LUSTRE, _found
from tests.cell.running import Place

WRITE = 'echo x >"$BURSTLAB_MOUNT/file" && dirname "$(dirname "$BURSTLAB_MOUNT")"'


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.fixture
def buffer(tmp_path: Path) -> Iterator[Path]:
    """A tmpfs that somebody else's files lie in."""
    path = tmp_path / "buffer"
    path.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "buffer", path], check=True)
    (path / "precious").write_text("keep")
    yield path
    subprocess.run(["umount", path], check=True)


def provided(path: str | Path, kind: str, *more: str) -> list[str]:
    options = [f"path={path}", f"type={kind}", *more]
    return ["--storage", "provided", *(word for option in options for word in ("-o", option))]


@pytest.mark.requires("root")
def test_a_cell_works_in_a_directory_of_its_own(
    place: Place, buffer: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SGE_BEEONDDIR", str(buffer))
    done = place.run(*provided("$SGE_BEEONDDIR", "tmpfs"), run=["sh", "-c", WRITE])
    assert done.returncode == 0, done.stderr
    assert (place.cell / "workload.log").read_text() == f"{buffer}\n"
    record = place.record()
    assert record is not None
    told = record["storage"]
    assert (told["type"], told["source"], told["shared"]) == ("tmpfs", "buffer", True)
    assert sorted(os.listdir(buffer)) == ["precious"]  # noqa: PTH208


@pytest.mark.requires("root")
def test_another_type_is_told(place: Place, buffer: Path) -> None:
    done = place.run(*provided(buffer, "beegfs"), run=["true"])
    record = place.record()
    assert record is not None and (done.returncode, record["status"]) == (0, "skipped")
    assert record["reason"].endswith(
        f"{buffer} is no beegfs: tmpfs from buffer is mounted at {buffer}"
    )


@pytest.mark.requires("root")
@pytest.mark.slow
def test_it_is_gone_under_the_workload(place: Place, buffer: Path) -> None:
    script = f'umount -l "{buffer}"; sleep 60'
    done = place.run(*provided(buffer, "tmpfs"), run=["sh", "-c", script])
    record = place.record()
    subprocess.run(["mount", "-t", "tmpfs", "buffer", buffer], check=True)
    assert record is not None and done.returncode == 122
    assert f"{buffer} is no tmpfs" in record["reason"]


@pytest.mark.requires("root")
def test_the_mount_table_alone_is_not_believed(
    buffer: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert unfit(None, str(buffer), "tmpfs") == ""  # type: ignore[arg-type]
    monkeypatch.setitem(MAGIC, "tmpfs", "19830326")
    told = f"{buffer} is mounted as tmpfs, and statfs tells another type: 0x1021994"
    assert unfit(None, str(buffer), "tmpfs") == told  # type: ignore[arg-type]


def test_a_mount_that_was_never_made_is_the_disk_below_it(place: Place, tmp_path: Path) -> None:
    (tmp_path / "beeond").mkdir()
    place.run(*provided(tmp_path / "beeond", "beegfs"), run=["true"])
    record = place.record()
    assert record is not None
    assert f"{mount_of(tmp_path).type} from " in record["reason"]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ([], "provided storage is told by its site: -o path=/beeond -o type=beegfs"),
        (provided("$NO_SUCH_BUFFER/x", "beegfs")[2:], "the job has no $NO_SUCH_BUFFER"),
        (provided("beeond", "beegfs")[2:], "no absolute path"),
    ],
)
def test_what_is_missing_is_told(place: Place, options: list[str], reason: str) -> None:
    place.run("--storage", "provided", *options, run=["true"])
    record = place.record()
    assert record is not None and record["status"] == "skipped" and reason in record["reason"]


def test_only_names_are_expanded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_JOB_ID", "42")
    path = "/mnt/odfs/$SLURM_JOB_ID/stripe_default"
    assert expand(path) == ("/mnt/odfs/42/stripe_default", "")
    assert expand("/$(id)/${SLURM_JOB_ID}/~") == ("/$(id)/${SLURM_JOB_ID}/~", "")
    monkeypatch.setenv("EMPTY", "")
    assert expand("$EMPTY/x")[1] == "EMPTY"


def test_stripes_of_beegfs_and_lustre() -> None:
    told = """Entry type: directory
Metadata node: node1 [ID: 1]
Stripe pattern details:
+ Type: RAID0
+ Chunksize: 512K
+ Number of storage targets: desired: 4
+ Storage Pool: 1 (Default)
"""
    expected = {"pattern": "RAID0", "chunk_size": "512K", "targets": "4", "pool": "1 (Default)"}
    assert _found(_BEEGFS, told) == expected
    lustre = "stripe_count:  4 stripe_size:   1048576 pattern:       raid0 stripe_offset: -1\n"
    expected = {"pattern": "raid0", "chunk_size": "1048576", "targets": "4"}
    assert _found(_LUSTRE, lustre) == expected
