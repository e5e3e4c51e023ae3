"""Data sets as `config/datasets.yaml` declares them."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, RootModel, StringConstraints, model_validator

from burstlab.config.load import Document, load_yaml, wrong

DATASETS = Path("config/datasets.yaml")
M31_DEG = (10.684708, 41.268750)  # right ascension, declination


class Region(Document):
    """A part of the sky, as `mArchiveList` wants it."""

    ra_deg: float = Field(ge=0, lt=360, description="Right ascension of the centre (J2000).")
    dec_deg: float = Field(ge=-90, le=90, description="Declination of the centre (J2000).")
    width_deg: float = Field(gt=0, le=90)
    height_deg: float = Field(gt=0, le=90)


class SyntheticTiles(Document):
    """Arguments of the generator: the same ones give the same bytes."""

    columns: int = Field(default=5, ge=1, le=100, description="Tiles in right ascension.")
    rows: int = Field(default=2, ge=1, le=100, description="Tiles in declination.")
    tile_width: int = Field(
        default=512, ge=32, le=4096, description="[pixel], 1 arcsec each; 2MASS: 512."
    )
    tile_height: int = Field(default=1024, ge=32, le=4096, description="[pixel]; 2MASS: 1024.")
    ra_deg: float = Field(default=M31_DEG[0], ge=0, lt=360, description="Centre; default: M31.")
    dec_deg: float = Field(default=M31_DEG[1], ge=-80, le=80)
    offset_dn: float = Field(
        default=5.0, ge=0, description="Largest offset of a tile's background."
    )
    slope_dn: float = Field(
        default=1.0, ge=0, description="Largest slope of it, over the whole tile."
    )
    noise_dn: float = Field(
        default=1.0, ge=0, description="Standard deviation of the noise per pixel."
    )
    stars_per_tile: int = Field(default=400, ge=0)
    seed: int = Field(default=20200731, ge=0)


class TwoMass(Document):
    """Atlas images of the Two Micron All Sky Survey, or tiles like them."""

    kind: Literal["2mass"]
    source: Literal["auto", "given", "fetched", "synthetic"] = Field(
        default="auto",
        description="given: a directory of tiles. fetched: from the archive. synthetic: made "
        "here. auto: given where BURSTLAB_2MASS or `directory` names one, else synthetic.",
    )
    directory: str | None = Field(
        default=None,
        description="Of given tiles; $VARIABLES expand, and BURSTLAB_2MASS comes first.",
    )
    region: Region | None = Field(default=None, description="What is fetched.")
    band: Literal["J", "H", "K"] = Field(default="J", description="What is fetched.")
    synthetic: SyntheticTiles = SyntheticTiles()

    @model_validator(mode="after")
    def _consistent(self) -> "TwoMass":
        if self.source == "fetched" and self.region is None:
            raise wrong("is missing: `source: fetched` wants to know what", at="region")
        if self.source in ("fetched", "synthetic") and self.directory is not None:
            raise wrong("is for `source: given` and `auto` only", at="directory")
        return self


class SyntheticImages(Document):
    """Arguments of the generator: the same ones give the same pixels."""

    classes: int = Field(default=10, ge=1, le=1000, description="Folders.")
    files: int = Field(default=640, ge=1, le=2_000_000, description="In all of them together.")
    mean_bytes: int = Field(
        default=110_000, ge=1000, le=10_000_000, description="Of a file; ImageNet: 110,000."
    )
    seed: int = Field(default=20120101, ge=0)

    @model_validator(mode="after")
    def _consistent(self) -> "SyntheticImages":
        if self.files < self.classes:
            raise wrong(f"{self.files}: fewer than the {self.classes} classes", at="files")
        return self


class ImageNet(Document):
    """ILSVRC2012's training images in folders of their classes, or images like them."""

    kind: Literal["imagenet"]
    source: Literal["auto", "given", "synthetic"] = Field(
        default="auto",
        description="given: a directory of class folders. synthetic: made here. auto: given where "
        "BURSTLAB_IMAGENET or `directory` names one, else synthetic.",
    )
    directory: str | None = Field(
        default=None,
        description="Of given images; $VARIABLES expand, and BURSTLAB_IMAGENET comes first.",
    )
    grey: Literal["exclude", "include"] = Field(
        default="exclude", description="Given images without colours; the papers exclude them."
    )
    synthetic: SyntheticImages = SyntheticImages()

    @model_validator(mode="after")
    def _consistent(self) -> "ImageNet":
        if self.source == "synthetic" and self.directory is not None:
            raise wrong("is for `source: given` and `auto` only", at="directory")
        return self


Dataset = Annotated[TwoMass | ImageNet, Field(discriminator="kind")]
Name = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9._-]*$")]


class Datasets(RootModel[dict[Name, Dataset]]):
    """The whole file: data sets by name."""


def load_datasets(path: Path = DATASETS) -> dict[str, Dataset]:
    """The data sets of a checkout, by name. Raises ConfigurationError."""
    return load_yaml(path, Datasets).root
