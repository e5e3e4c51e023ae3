"""ImageNet as a data set: the user's tree, or images like it."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from burstlab.dataset.images import image, make_images
from burstlab.dataset.make import conditions, make
from burstlab.dataset.manifest import Manifest, verify
from burstlab.dataset.model import ImageNet, SyntheticImages
from burstlab.errors import ConfigurationError

SMALL = SyntheticImages(classes=3, files=200, mean_bytes=3000)


@pytest.fixture(scope="module")
def synthetic(tmp_path_factory: pytest.TempPathFactory) -> Manifest:
    path = tmp_path_factory.mktemp("imagenet") / "manifest.json"
    return make("small", ImageNet(kind="imagenet", synthetic=SMALL), path)


@pytest.fixture
def given(tmp_path: Path) -> Path:
    """Two classes; one image is grey, one is a PNG by another name, as in ILSVRC2012."""
    for number in range(6):
        folder = tmp_path / "given" / f"n0144076{number % 2}"
        folder.mkdir(parents=True, exist_ok=True)
        image(1, number, 2000).save(folder / f"{number}.JPEG", "JPEG")
    image(1, 7, 2000).convert("L").save(tmp_path / "given/n01440760/grey.JPEG", "JPEG")
    image(1, 8, 2000).save(tmp_path / "given/n01440761/png.JPEG", "PNG")
    (tmp_path / "given/n01440761/notes.txt").write_text("no image")
    return tmp_path / "given"


def made(tmp_path: Path, given: Path, **fields: object) -> Manifest:
    dataset = ImageNet(kind="imagenet", directory=str(given), **fields)  # type: ignore[arg-type]
    return make("given", dataset, tmp_path / "manifest.json")


def test_images_are_spread_over_classes_and_can_be_decoded(synthetic: Manifest) -> None:
    assert (synthetic.source, synthetic.file_count) == ("synthetic", 200)
    classes = [entry.path.split("/")[0] for entry in synthetic.files]
    assert sorted(map(classes.count, set(classes))) == [66, 67, 67]
    assert len({entry.checksum for entry in synthetic.files}) == 200
    for entry in synthetic.files[::20]:
        with Image.open(synthetic.root / entry.path) as opened:
            opened.load()
            assert (opened.format, opened.mode) == ("JPEG", "RGB")
    assert verify(synthetic, full=True) == []


def test_files_have_the_size_that_was_asked_for(tmp_path: Path) -> None:
    """The mean of 60 of ImageNet's size: its standard error is 5 %."""
    make_images(tmp_path / "images", SyntheticImages(classes=1, files=60))
    sizes = [path.stat().st_size for path in (tmp_path / "images").glob("*/*.JPEG")]
    assert np.mean(sizes) == pytest.approx(110_000, rel=0.15)
    assert max(sizes) > 2 * min(sizes)


def test_the_same_arguments_give_the_same_pixels() -> None:
    first, again, other = image(1, 5, 2000), image(1, 5, 2000), image(2, 5, 2000)
    assert first.tobytes() == again.tobytes() != other.tobytes()


def test_grey_images_are_left_out_as_in_the_paper(given: Path, tmp_path: Path) -> None:
    manifest = made(tmp_path, given)
    assert (manifest.source, manifest.root, manifest.file_count) == ("given", given, 7)
    assert "n01440760/grey.JPEG" not in {entry.path for entry in manifest.files}
    assert manifest.details["grey_files"] == 1
    assert verify(manifest) == []
    assert made(tmp_path, given, grey="include").file_count == 8


def test_a_class_without_images_is_named(given: Path, tmp_path: Path) -> None:
    (given / "n01440999").mkdir()
    with pytest.raises(ConfigurationError, match=r"n01440999: no JPEG file in this class folder"):
        made(tmp_path, given)


def test_what_is_no_image_is_named(given: Path, tmp_path: Path) -> None:
    (given / "n01440760/0.JPEG").write_bytes(b"\xff\xd8nothing")
    with pytest.raises(ConfigurationError, match=r"n01440760/0\.JPEG: is not an image"):
        made(tmp_path, given)
    assert not (tmp_path / "manifest.json").exists()


def test_no_folders_no_data_set(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"No such file or directory \(see BURSTLAB_IMA"):
        made(tmp_path, tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigurationError, match=r"empty: no class folders there"):
        made(tmp_path, tmp_path / "empty")


def test_what_changes_the_files_changes_the_conditions() -> None:
    def told(**fields: object) -> str:
        return conditions(ImageNet(kind="imagenet", **fields))  # type: ignore[arg-type]

    assert told() != told(synthetic=SMALL)
    assert told(directory="/a") == told(directory="/a", synthetic=SMALL)
    assert told(directory="/a") != told(directory="/a", grey="include")
