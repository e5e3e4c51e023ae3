"""Every failure burstlab reports, and the exit status that goes with it (docs/reference.md)."""

from typing import ClassVar


class BurstlabError(Exception):
    """A failure told to the user in one line: what was done, to what, why it failed, what to do."""

    exit_status: ClassVar[int] = 125


class ConfigurationError(BurstlabError):
    """Bad input: an argument, a configuration file, a dataset. Nothing was started."""

    exit_status = 120


class AllocationError(BurstlabError):
    """The hosts asked for are not in what the scheduler or the user gave, or can't be used."""

    exit_status = 121


class StorageError(BurstlabError):
    """A storage could not be provisioned, or did not stay healthy until the end."""

    exit_status = 122


class StagingError(BurstlabError):
    """Data could not be brought in or out complete and unchanged."""

    exit_status = 123


class NodeError(BurstlabError):
    """An action failed on one host; ``host`` names it."""

    exit_status = 122

    def __init__(self, host: str, message: str) -> None:
        super().__init__(host, message)
        self.host = host

    def __str__(self) -> str:
        return f"{self.host}: {self.args[1]}"


class CheckError(BurstlabError):
    """The workload ended well, and its result or its report is not what it should be."""

    exit_status = 119


class Skipped(BurstlabError):
    """The cell can't run here, for a reason that is no failure; a record says so."""

    exit_status = 0
