"""Every file that is not what the manifest says is named, and no other."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from burstlab.dataset import manifest as module
from burstlab.dataset.manifest import MOST_NAMED, Manifest, read_manifest, spot_check, verify
from tests.dataset.test_manifest import contents, directory_of, manifest_of


def remove(path: Path) -> None:
    path.unlink()


def truncate(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 1)


def extend(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"+")


def rewrite(path: Path) -> None:
    """Another content of the same length, at another time."""
    before = path.stat()
    path.write_bytes(bytes(255 - byte for byte in path.read_bytes()))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns + 1))


def rewrite_unseen(path: Path) -> None:
    """Another content of the same length, and the time set back."""
    before = path.stat()
    path.write_bytes(bytes(255 - byte for byte in path.read_bytes()))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def make_directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


TOLD = {
    remove: "missing",
    truncate: "truncated: ",
    extend: "changed: ",
    rewrite: "changed: has another checksum",
    rewrite_unseen: "changed: has another checksum",
    make_directory: "is not a file",
}


@given(contents)
def test_what_did_not_change_is_fine(files: dict[str, bytes]) -> None:
    with directory_of(files) as (root, manifest):
        for entry in manifest.files:
            os.utime(root / entry.path, ns=(0, entry.mtime_ns + 1))  # copied elsewhere, say
        assert verify(manifest) == verify(manifest, full=True) == spot_check(manifest) == []


@given(contents, st.sampled_from(sorted(TOLD, key=str)), st.data())
def test_each_damage_is_told(
    files: dict[str, bytes], damage: Callable[[Path], None], data: st.DataObject
) -> None:
    with directory_of({name: content + b"." for name, content in files.items()}) as (
        root,
        manifest,
    ):
        hurt = data.draw(st.sampled_from(manifest.files)).path
        damage(root / hurt)
        full = verify(manifest, full=True)
        assert len(full) == 1 and full[0].startswith(f"{hurt}: {TOLD[damage]}")
        assert (
            verify(manifest) == spot_check(manifest) == ([] if damage is rewrite_unseen else full)
        )


def tree(tmp_path: Path, number: int) -> Manifest:
    root = tmp_path / "root"
    root.mkdir()
    for i in range(number):
        (root / f"{i:04d}.fits").write_bytes(b"%d" % i)
    return manifest_of(root, ("*.fits",))


def test_sizes_are_told(tmp_path: Path) -> None:
    manifest = tree(tmp_path, 200)
    (manifest.root / "0100.fits").write_bytes(b"1")
    (manifest.root / "0101.fits").write_bytes(b"1010")
    assert verify(manifest) == [
        "0100.fits: truncated: 1 of 3 bytes",
        "0101.fits: changed: 4 bytes instead of 3",
    ]


def test_new_files_are_named_but_not_others(tmp_path: Path) -> None:
    manifest = tree(tmp_path, 2)
    (manifest.root / "README.md").touch()
    (manifest.root / "new.fits").touch()
    assert verify(manifest) == ["new.fits: is not in the manifest"]


def test_the_first_are_named_the_rest_counted(tmp_path: Path) -> None:
    manifest = tree(tmp_path, 700)  # in several batches
    for entry in manifest.files[100:]:
        (manifest.root / entry.path).unlink()
    found = verify(manifest)
    assert len(found) == MOST_NAMED + 1
    assert found[0] == "0100.fits: missing" and found[-1] == f"and {600 - MOST_NAMED} more"


def test_a_directory_that_is_gone_is_one_line(tmp_path: Path) -> None:
    manifest = tree(tmp_path, 3)
    manifest.root.rename(tmp_path / "elsewhere")
    for check in (verify, spot_check):
        assert check(manifest) == [f"{manifest.root}: the directory is gone"]


def test_a_file_nobody_may_read_is_told(tmp_path: Path) -> None:
    manifest = tree(tmp_path, 1)
    loop = manifest.root / "0000.fits"
    loop.unlink()
    loop.symlink_to(loop)
    assert verify(manifest)[0].startswith("0000.fits: can't be read: ")


def test_a_spot_check_of_many_files_reads_no_more_than_its_share(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "FEW_FILES", 20)
    manifest = tree(tmp_path, 400)
    looked_at = []
    look = module._fault
    monkeypatch.setattr(
        module, "_fault", lambda path, *more: looked_at.append(path) or look(path, *more)
    )
    assert spot_check(read_manifest(manifest.path)) == []
    assert len(looked_at) == 20
    for path in manifest.root.iterdir():
        path.unlink()
    assert len(spot_check(manifest)) == MOST_NAMED + 1
