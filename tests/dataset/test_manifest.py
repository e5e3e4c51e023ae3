"""The manifest file: what is written is read, whole or not at all, and cheaply."""

import hashlib
import itertools
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from burstlab.dataset.manifest import Entry, Manifest, members, read_manifest
from burstlab.dataset.writing import scan, write_manifest
from burstlab.errors import ConfigurationError

# Names a file system may hold, bytes that are no UTF-8 among them; not hidden, no path in itself.
names = (
    st.binary(min_size=1, max_size=20)
    .filter(lambda name: not {b"/"[0], 0} & {*name} and not name.startswith(b"."))
    .map(os.fsdecode)
)
contents = st.dictionaries(names, st.binary(max_size=200), min_size=1, max_size=8)


@contextmanager
def directory_of(files: dict[str, bytes]) -> Iterator[tuple[Path, Manifest]]:
    """A directory with these files, every other one deeper down, and its manifest."""
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(temporary, "root")
        for number, (name, content) in enumerate(files.items()):
            path = root / (f"{number}.d" if number % 2 else "") / name
            path.parent.mkdir(exist_ok=True, parents=True)
            path.write_bytes(content)
        yield root, manifest_of(root)


def manifest_of(root: Path, patterns: tuple[str, ...] = ("**/*",)) -> Manifest:
    paths = [path for path in members(root, patterns) if (root / path).is_file()]
    return write_manifest(
        root.parent / "manifest.json",
        scan(root, paths),
        name="test",
        source="given",
        details={"directory": str(root)},
        root=root,
        patterns=patterns,
    )


@given(contents)
def test_what_is_written_is_read(files: dict[str, bytes]) -> None:
    with directory_of(files) as (root, manifest):
        again = read_manifest(manifest.path)
        assert again == manifest
        assert (again.name, again.source, again.root) == ("test", "given", root)
        assert again.details == {"directory": str(root)}
        assert again.file_count == len(again.files) == len(files)
        assert again.size_bytes == sum(len(content) for content in files.values())
        assert [entry.path for entry in again.files] == sorted(entry.path for entry in again.files)
        for entry in again.files:
            content = (root / entry.path).read_bytes()
            assert entry.size == len(content)
            assert entry.checksum == hashlib.sha256(content).hexdigest()


@given(contents)
def test_any_json_reader_reads_it(files: dict[str, bytes]) -> None:
    with directory_of(files) as (_, manifest):
        content = json.loads(manifest.path.read_text())
        assert content["files"] == len(content["entries"]) == len(files)


@given(contents)
def test_a_small_manifest_is_sampled_whole(files: dict[str, bytes]) -> None:
    with directory_of(files) as (_, manifest):
        assert sorted(manifest.sample(1000)) == [*manifest.files]


def test_a_large_manifest_is_sampled_evenly(tmp_path: Path) -> None:
    entries = [Entry(f"d{i // 100:03d}/f{i:05d}", i, i, "0" * 64) for i in range(20_000)]
    manifest = written(tmp_path, entries)
    sample = manifest.sample(200)
    assert sample == manifest.sample(200)
    assert {*sample} <= {*entries}
    numbers = [entry.size for entry in sample]
    gaps = [after - before for before, after in itertools.pairwise(numbers)]
    assert len(sample) == 200 and max(gaps) < 2 * 20_000 / 200 and min(gaps) > 0


def written(directory: Path, entries: list[Entry], **fields: object) -> Manifest:
    given = {"name": "x", "source": "given", "details": {}, "root": directory, "patterns": ["*"]}
    return write_manifest(directory / "manifest.json", entries, **given | fields)  # type: ignore[arg-type]


def test_the_digest_is_that_of_what_sha256sum_prints(tmp_path: Path) -> None:
    for name, content in {"b.fits": b"two", "a.fits": b"one", "c d.fits": b""}.items():
        (tmp_path / name).write_bytes(content)
    manifest = written(tmp_path, scan(tmp_path, ["b.fits", "c d.fits", "a.fits"]))
    line = "LC_ALL=C; sha256sum *.fits | sha256sum"
    printed = subprocess.run(["sh", "-c", line], cwd=tmp_path, capture_output=True, text=True)
    assert manifest.sha256 == printed.stdout.split()[0]


def test_the_digest_does_not_depend_on_place_and_time(tmp_path: Path) -> None:
    digests = set()
    for name, mtime_ns in (("here", 10**18), ("there", 2 * 10**18)):
        root = tmp_path / name
        root.mkdir()
        (root / "a").write_bytes(b"same")
        os.utime(root / "a", ns=(0, mtime_ns))
        digests.add(written(root, scan(root, ["a"])).sha256)
    assert len(digests) == 1


def test_it_moves_with_the_files_beside_it(tmp_path: Path) -> None:
    root = tmp_path / "before" / "tiles"
    root.mkdir(parents=True)
    written(root.parent, [], root=root)
    (tmp_path / "before").rename(tmp_path / "after")
    assert read_manifest(tmp_path / "after/manifest.json").root == tmp_path / "after/tiles"


def test_files_elsewhere_stay_where_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("manifests").mkdir()
    manifest = written(Path("manifests"), [], root=Path("tiles"))
    assert manifest.root == tmp_path / "tiles"


def test_a_manifest_that_is_none_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "manifest.json"
    for content in ("", "[1]\n", "{}\n", '{"schema": "burstlab.manifest/2", "entries": [\n', "\0"):
        path.write_text(content)
        with pytest.raises(ConfigurationError, match=r"manifest\.json: .*burstlab dataset make"):
            read_manifest(path)
    path.unlink()
    with pytest.raises(ConfigurationError, match="No such file"):
        read_manifest(path)


def test_a_torn_manifest_is_refused(tmp_path: Path) -> None:
    manifest = written(tmp_path, [Entry(f"f{i}", 1, 1, "0" * 64) for i in range(100)])
    text = manifest.path.read_text()
    lines = text.splitlines(keepends=True)
    for torn in (text[: len(text) // 2], "".join(lines[:50] + lines[60:])):
        manifest.path.write_text(torn)
        with pytest.raises(ConfigurationError, match="make it with"):
            _ = read_manifest(manifest.path).files


def test_a_failed_write_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = written(tmp_path, [Entry("a", 1, 1, "0" * 64)]).path.read_text()

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        written(tmp_path, [])
    assert [path.name for path in tmp_path.iterdir()] == ["manifest.json"]
    assert (tmp_path / "manifest.json").read_text() == before


def test_a_file_that_changes_while_it_is_read_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").write_bytes(b"1")

    def checksum_beside_a_writer(path: Path) -> str:
        path.write_bytes(b"22")
        return "0" * 64

    monkeypatch.setattr("burstlab.dataset.writing.checksum", checksum_beside_a_writer)
    with pytest.raises(ConfigurationError, match="a: changes while its manifest is made"):
        scan(tmp_path, ["a"])


def test_hidden_files_are_no_members(tmp_path: Path) -> None:
    for name in ("a.fits", ".a.fits.burstlab-partial.fits", "README.md"):
        (tmp_path / name).touch()
    assert members(tmp_path, ["*.fits"]) == ["a.fits"]


def test_a_cell_reads_it_without_heavy_modules(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"1")
    path = written(tmp_path, scan(tmp_path, ["a"]), patterns=["a"]).path
    program = (
        "import sys; from pathlib import Path\n"
        "from burstlab.dataset.manifest import read_manifest, spot_check\n"
        "assert spot_check(read_manifest(Path(sys.argv[1]))) == []\n"
        "print(*sorted(m.split('.')[0] for m in sys.modules))"
    )
    command = [sys.executable, "-c", program, str(path)]
    loaded = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    heavy = {"pydantic", "yaml", "numpy", "astropy", "rich", "hashlib", "concurrent"}
    assert not heavy & {*loaded}
