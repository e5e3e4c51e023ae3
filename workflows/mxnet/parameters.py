"""What is trained and how: MXNET_NAME of the environment, with the paper's values as defaults.

Both interpreters read it, burstlab's and MXNet's.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields

FORMATS = ("recordio", "jpeg")


class BadParameter(Exception):
    """Which variable is wrong, its value, and what it may be."""


@dataclass(frozen=True)
class Parameters:
    """Of one training; ``batch`` and ``readers`` are those of each rank."""

    network: str = "resnet50_v1"  # a name of mxnet.gluon.model_zoo.vision
    format: str = "recordio"
    batch: int = 128
    epochs: int = 2
    side: int = 224  # of the square that the network sees [pixel]
    ranks: int = 1  # of each node
    readers: int = 0  # threads that read and decode; 0: a rank's share of the cores

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> "Parameters":
        """Raises BadParameter."""
        given = {}
        for field in fields(cls):
            name = "MXNET_" + field.name.upper()
            text = environment.get(name, "")
            if text and isinstance(field.default, int):
                least = 0 if field.name == "readers" else 1
                if not text.isdigit() or int(text) < least:
                    raise BadParameter(f"{name}={text}: a whole number from {least} is wanted")
                given[field.name] = int(text)
            elif text:
                given[field.name] = text
        made = cls(**given)
        if made.format not in FORMATS:
            raise BadParameter(f"MXNET_FORMAT={made.format}: {' or '.join(FORMATS)} is wanted")
        return made

    def variables(self) -> Mapping[str, str]:
        """The same, for the environment of the ranks."""
        return {"MXNET_" + f.name.upper(): str(getattr(self, f.name)) for f in fields(self)}
