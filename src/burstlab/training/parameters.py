"""What is trained and how: variables of the environment, WORKLOAD_NAME for each.

Both interpreters read them, burstlab's and that of the ranks.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import ClassVar, Self

from burstlab.errors import BurstlabError
from burstlab.pipelines import MODES


class BadParameter(BurstlabError):
    """Which variable is wrong, its value, and what it may be."""


@dataclass(frozen=True)
class AnyParameters:
    """Of one training, whatever trains; ``batch`` is that of each rank."""

    ALLOWED: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    MAY_BE_ZERO: ClassVar[tuple[str, ...]] = ()

    network: str = "resnet50"
    batch: int = 32
    epochs: int = 10
    side: int = 224  # of the square that the network sees [pixel]
    ranks: int = 4  # of each node

    @classmethod
    def of(cls, workload: str, environment: Mapping[str, str]) -> Self:
        """As the environment has them, else the defaults. Raises BadParameter."""
        given: dict[str, str | int] = {}
        for field in fields(cls):
            variable = f"{workload}_{field.name}".upper()
            text = environment.get(variable, "")
            if text and isinstance(field.default, int):
                least = 0 if field.name in cls.MAY_BE_ZERO else 1
                if not text.isdecimal() or int(text) < least:
                    raise BadParameter(f"{variable}={text}: a whole number from {least} is wanted")
                given[field.name] = int(text)
            elif text:
                given[field.name] = text
                allowed = cls.ALLOWED.get(field.name, (text,))
                if text not in allowed:
                    raise BadParameter(f"{variable}={text}: there are {', '.join(allowed)}")
        return cls(**given)  # type: ignore[arg-type]

    def variables(self, workload: str) -> dict[str, str]:
        """The same, for the environment of the ranks."""
        return {f"{workload}_{f.name}".upper(): str(getattr(self, f.name)) for f in fields(self)}

    def problem(self, storage: str) -> str:
        """Why there can be no such training on this storage; empty if there can."""
        return ""


@dataclass(frozen=True)
class Parameters(AnyParameters):
    """Of a training by one of burstlab's pipelines, with Serizawa's values as defaults.

    ``generation`` and ``copiers`` are those of each rank.
    """

    ALLOWED: ClassVar = {"network": ("resnet50", "small"), "mode": MODES}
    MAY_BE_ZERO = ("validation",)

    mode: str = "lazy"  # how minibatches come, of burstlab.pipelines.MODES
    generation: int = 2  # workers that decode
    copiers: int = 2  # paper3: processes of its prefetch stage
    patience: int = 300  # of a rank with a file that does not come [s]; metadata servers fail over
    validation: int = 0  # percent of the images that are not trained on
    schedule: int = 100  # epochs of the whole course of the learning rate

    @classmethod
    def of(cls, workload: str, environment: Mapping[str, str]) -> Self:
        """As the environment has them, else the defaults. Raises BadParameter."""
        made = super().of(workload, environment)
        if made.validation > 50:
            variable = f"{workload}_validation".upper()
            raise BadParameter(f"{variable}={made.validation}: at most 50 percent are held back")
        return made

    def problem(self, storage: str) -> str:
        """Why there can be no such training on this storage; empty if there can."""
        if self.mode == "ssd" and storage != "nodelocal":
            return f"mode ssd on storage {storage}: it reads what was staged to nodelocal"
        return ""
