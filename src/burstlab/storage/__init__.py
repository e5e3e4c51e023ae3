"""The storages. Adding one: a module here that passes the conformance suite, and a line below."""

import importlib
from typing import TYPE_CHECKING

from burstlab.errors import ConfigurationError

if TYPE_CHECKING:
    from burstlab.storage.interface import Storage

STORAGES = {
    "pfs": "burstlab.storage.pfs:PfsStorage",
    "nodelocal": "burstlab.storage.nodelocal:NodeLocalStorage",
    "gfarm": "burstlab.storage.gfarm:GfarmStorage",
    "beeond": "burstlab.storage.beeond:BeeondStorage",
    "provided": "burstlab.storage.provided:ProvidedStorage",
}


def storage_class(name: str) -> type["Storage"]:
    """The provider of that name. Raises ConfigurationError naming the ones there are."""
    if name not in STORAGES:
        raise ConfigurationError(f"no storage {name!r}: there are {', '.join(STORAGES)}")
    module, _, class_name = STORAGES[name].partition(":")
    provider: type[Storage] = getattr(importlib.import_module(module), class_name)
    return provider
