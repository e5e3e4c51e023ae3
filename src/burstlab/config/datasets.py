"""The data sets that a campaign reads: what becomes of each, looked at once."""

from collections.abc import Iterator
from pathlib import Path

from burstlab.dataset import make
from burstlab.dataset.model import DATASETS, load_datasets


class DataSets:
    """Those of a checkout, by name; methods raise ConfigurationError."""

    def __init__(self, root: Path) -> None:
        self._declared = load_datasets(root / DATASETS)
        self._contents: dict[str, str] = {}
        self._replaced: dict[str, bool] = {}
        self._wanted: set[str] = set()  # by some job of this run

    def manifest(self, name: str) -> str:
        """Path of the manifest, which a job wants."""
        self._wanted.add(name)
        return str(make.manifest_path(name))

    def definition(self, name: str) -> str:
        """What it is made from."""
        return make.conditions(self._declared[name])

    def content(self, name: str) -> str | None:
        """What it holds; looked at again as long as its manifest is going to be made."""
        if name in self._contents:
            return self._contents[name]
        content = make.content(name, self._declared[name])
        if content is not None and not self.is_replaced(name):
            self._contents[name] = content
        return content

    def is_replaced(self, name: str) -> bool:
        """Whether it will be made again with other files; looked at before anything is made."""
        if name not in self._replaced:
            self._replaced[name] = make.is_replaced(name, self._declared[name])
        return self._replaced[name]

    def damaged(self) -> Iterator[str]:
        """Those that jobs of this run read and that are not what their manifest says."""
        from burstlab.dataset.manifest import read_manifest, verify

        for name in sorted(self._wanted):
            path = make.manifest_path(name)
            if path.exists():
                for problem in verify(read_manifest(path)):
                    yield (
                        f"{path}: {problem}: mend it, or make the data set again, as it is now: "
                        f"burstlab dataset make {name}"
                    )
