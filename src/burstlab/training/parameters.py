"""What is trained and how: variables of the environment, with Serizawa's values as defaults."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Self

from burstlab.errors import BurstlabError
from burstlab.pipelines import MODES

NETWORKS = ("resnet50", "small")
MAY_BE_ZERO = ("validation",)


class BadParameter(BurstlabError):
    """Which variable is wrong, its value, and what it may be."""


@dataclass(frozen=True)
class Parameters:
    """Of one training; ``batch``, ``generation`` and ``copiers`` are those of each rank."""

    network: str = "resnet50"
    mode: str = "lazy"  # how minibatches come, of burstlab.pipelines.MODES
    batch: int = 32
    epochs: int = 10
    side: int = 224  # of the square that the network sees [pixel]
    ranks: int = 4  # of each node
    generation: int = 2  # workers that decode
    copiers: int = 2  # paper3: processes of its prefetch stage
    validation: int = 0  # percent of the images that are not trained on
    schedule: int = 100  # epochs of the whole course of the learning rate

    @classmethod
    def of(cls, workload: str, environment: Mapping[str, str]) -> Self:
        """From WORKLOAD_NAME for each. Raises BadParameter."""
        given: dict[str, str | int] = {}
        for field in fields(cls):
            variable = f"{workload}_{field.name}".upper()
            text = environment.get(variable, "")
            if text and isinstance(field.default, int):
                least = 0 if field.name in MAY_BE_ZERO else 1
                if not text.isdigit() or int(text) < least:
                    raise BadParameter(f"{variable}={text}: a whole number from {least} is wanted")
                given[field.name] = int(text)
            elif text:
                given[field.name] = text
        made = cls(**given)  # type: ignore[arg-type]
        for name, value, allowed in (
            ("network", made.network, NETWORKS),
            ("mode", made.mode, MODES),
        ):
            if value not in allowed:
                variable = f"{workload}_{name}".upper()
                raise BadParameter(f"{variable}={value}: there are {', '.join(allowed)}")
        if made.validation > 50:
            variable = f"{workload}_validation".upper()
            raise BadParameter(f"{variable}={made.validation}: at most 50 percent are held back")
        return made

    def variables(self, workload: str) -> dict[str, str]:
        """The same, for the environment of the ranks."""
        return {f"{workload}_{f.name}".upper(): str(getattr(self, f.name)) for f in fields(self)}
