"""What each host copies of a data set, and what gfpcopy can't be given."""

from pathlib import Path

import pytest

from burstlab.dataset.manifest import Entry, Manifest
from burstlab.errors import ConfigurationError
from burstlab.storage.gfarm.provider import Options
from burstlab.storage.gfarm.staging import part_of, why_not_gfpcopy


def manifest(sizes: dict[str, int], root: Path = Path("/data")) -> Manifest:
    """A manifest of files that need not be there."""
    whole = Manifest(
        path=root / "manifest.json", name="test", source="given", details={}, root=root,
        patterns=("**/*",), file_count=0, size_bytes=0, sha256="",
    )  # fmt: skip
    return whole.part(Entry(path, size, 0, "") for path, size in sizes.items())


@pytest.mark.parametrize("hosts", [1, 3, 4, 50])
def test_every_file_is_copied_by_one_host(hosts: int) -> None:
    whole = manifest({f"file{number}": number * number for number in range(40)})
    parts = [part_of(whole, number, hosts) for number in range(hosts)]
    assert sorted(entry for part in parts for entry in part) == sorted(whole.files)


def test_every_host_has_as_many_files_and_bytes_as_the_next() -> None:
    whole = manifest({f"file{number}": number for number in range(1000)} | {"large": 50_000})
    parts = [part_of(whole, number, 4) for number in range(4)]
    assert {len(part) for part in parts} <= {250, 251}
    small = [sum(entry.size for entry in part if entry.path != "large") for part in parts]
    assert max(small) - min(small) < 1000


def test_a_part_tells_its_own_numbers() -> None:
    whole = manifest({"a": 1, "b": 20, "c": 300})
    assert (whole.file_count, whole.size_bytes) == (3, 321)
    part = whole.part(whole.files[1:])
    assert (part.file_count, part.size_bytes, part.files) == (2, 320, whole.files[1:])
    assert part.root == whole.root


def test_gfpcopy_gets_a_directory_that_is_the_data_set(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a/file").write_text("x")
    whole = manifest({"a/file": 1}, tmp_path)
    assert why_not_gfpcopy(whole, tmp_path) == ""
    (tmp_path / "a/other").write_text("x")
    assert why_not_gfpcopy(whole, tmp_path).startswith(f"{tmp_path}/a/other is not of the data set")


def test_gfpcopy_gets_no_links(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/etc/hostname")
    why = why_not_gfpcopy(manifest({"link": 1}, tmp_path), tmp_path)
    assert "link is a symbolic link" in why


def test_an_option_that_is_none_is_refused_with_those_that_are() -> None:
    with pytest.raises(ConfigurationError, match="stage_in=scp: mounts or gfpcopy"):
        Options(stage_in="scp")
    with pytest.raises(ConfigurationError, match="launcher=systemd: burstlab or gfarmbb"):
        Options(launcher="systemd")
