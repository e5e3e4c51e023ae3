"""Which way the tiles come, and what is wrong with them, told before any cell runs."""

import gzip
import shutil
from pathlib import Path

import pytest

from burstlab.dataset.make import conditions, make
from burstlab.dataset.manifest import Manifest, verify
from burstlab.dataset.model import TwoMass
from burstlab.dataset.twomass import origin
from burstlab.errors import ConfigurationError
from tests.dataset.conftest import SMALL


@pytest.fixture
def tiles(small_tiles: Path, tmp_path: Path) -> Path:
    """A directory of tiles whose truth nobody knows, and a file that is none of them."""
    directory = tmp_path / "given tiles"
    shutil.copytree(small_tiles, directory)
    (directory / "truth.json").unlink()
    (directory / "README.md").write_text("not a tile")
    return directory


def made(tmp_path: Path, **fields: object) -> Manifest:
    dataset = TwoMass(kind="2mass", synthetic=SMALL, **fields)  # type: ignore[arg-type]
    return make("2mass-test", dataset, tmp_path / "made" / "manifest.json")


@pytest.mark.parametrize(
    ("source", "variable", "directory", "expected"),
    [
        ("auto", "", None, ("synthetic", "")),
        ("auto", "/v", None, ("given", "/v")),
        ("auto", "", "/d", ("given", "/d")),
        ("auto", "/v", "/d", ("given", "/v")),
        ("given", "/v", "/d", ("given", "/v")),
        ("given", "", "$SOMEWHERE/d/../e", ("given", "/some/e")),
        ("synthetic", "/v", None, ("synthetic", "")),
        ("fetched", "/v", None, ("fetched", "")),
    ],
)
def test_the_rule_of_the_sources(
    monkeypatch: pytest.MonkeyPatch,
    source: str,
    variable: str,
    directory: str | None,
    expected: tuple[str, str],
) -> None:
    monkeypatch.setenv("BURSTLAB_2MASS", variable)
    monkeypatch.setenv("SOMEWHERE", "/some")
    region = {"ra_deg": 1.0, "dec_deg": 1.0, "width_deg": 1.0, "height_deg": 1.0}
    fields = {"kind": "2mass", "source": source, "directory": directory, "region": region}
    assert origin(TwoMass.model_validate(fields)) == expected


def test_given_without_a_place_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="set BURSTLAB_2MASS or `directory`"):
        origin(TwoMass(kind="2mass", source="given"))


def test_given_tiles_stay_where_they_are(tiles: Path, tmp_path: Path) -> None:
    before = sorted(tiles.iterdir())
    manifest = made(tmp_path, directory=str(tiles))
    assert (manifest.source, manifest.root, manifest.file_count) == ("given", tiles, 6)
    assert manifest.details == {"directory": str(tiles)}
    assert all(entry.path.endswith(".fits") for entry in manifest.files)
    assert sorted(tiles.iterdir()) == before and verify(manifest, full=True) == []
    assert [path.name for path in (tmp_path / "made").iterdir()] == ["manifest.json"]


def test_links_to_the_directory_are_not_followed(tiles: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tiles)
    assert made(tmp_path, directory=str(tmp_path / "link")).root == tmp_path / "link"


def test_synthetic_tiles_lie_beside_the_manifest_with_their_truth(tmp_path: Path) -> None:
    manifest = made(tmp_path)
    assert (manifest.source, manifest.root) == ("synthetic", tmp_path / "made/synthetic")
    assert manifest.details == SMALL.model_dump()
    assert manifest.file_count == 7 and manifest.files[-1].path == "truth.json"
    assert made(tmp_path).sha256 == manifest.sha256


def test_synthetic_tiles_that_are_given_are_not_called_real(
    small_tiles: Path, tmp_path: Path
) -> None:
    manifest = made(tmp_path, directory=str(small_tiles))
    assert (manifest.source, manifest.file_count) == ("synthetic", 7)
    assert manifest.details == {"directory": str(small_tiles)}


def cut_data(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:20_000])


def cut_padding(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def cut_header(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:1000])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def junk(path: Path) -> None:
    path.write_bytes(b"<html>not found</html>" * 1000)


def cut_gzip(path: Path) -> None:
    path.write_bytes(gzip.compress(path.read_bytes())[:-100])


def directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (cut_data, r"truncated: 20000 of \d+ bytes"),
        (cut_padding, r"truncated: \d+ of \d+ bytes"),
        (cut_header, "is not a FITS image"),
        (empty, "is not a FITS image"),
        (junk, "is not a FITS image"),
        (cut_gzip, "truncated: the gzip stream ends early"),
        (directory, "can't be read: Is a directory"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_damaged_tile_is_named(tiles: Path, tmp_path: Path, damage, told: str) -> None:  # type: ignore[no-untyped-def]
    hurt = sorted(tiles.glob("*.fits"))[3]
    made(tmp_path, directory=str(tiles))
    damage(hurt)
    with pytest.raises(ConfigurationError, match=f"{hurt.name}: {told}"):
        made(tmp_path, directory=str(tiles))
    assert not (tmp_path / "made/manifest.json").exists()  # nor the one made before


def test_a_compressed_tile_is_a_tile(tiles: Path, tmp_path: Path) -> None:
    """The archive serves gzip, and copies of it under `.fits` are about."""
    path = sorted(tiles.glob("*.fits"))[0]
    path.write_bytes(gzip.compress(path.read_bytes()))
    assert made(tmp_path, directory=str(tiles)).file_count == 6


def test_a_directory_without_tiles_is_named(tmp_path: Path) -> None:
    nothing = tmp_path / "nothing"
    nothing.mkdir()
    (nothing / "README.md").touch()
    with pytest.raises(ConfigurationError, match=f"{nothing}: no tiles there"):
        made(tmp_path, directory=str(nothing))


def test_a_directory_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"/absent: no such directory.*BURSTLAB_2MASS"):
        made(tmp_path, directory=str(tmp_path / "absent"))


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "made").touch()
    with pytest.raises(ConfigurationError, match=r"data set 2mass-test: .*/made: "):
        made(tmp_path)


def test_conditions_change_with_what_the_files_depend_on(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = TwoMass(kind="2mass", synthetic=SMALL)
    seen = {conditions(plain), conditions(TwoMass(kind="2mass"))}
    monkeypatch.setenv("BURSTLAB_2MASS", "/here")
    seen.add(conditions(plain))
    assert len(seen) == 3
    assert conditions(plain) == conditions(TwoMass(kind="2mass"))  # of the generator: not used
