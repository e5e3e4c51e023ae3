"""How set-up fails: one message for the user, one documented exit status (docs/install.md)."""

from typing import ClassVar


class SetupError(Exception):
    """Set-up can't go on; the message says what to do."""

    exit_status: ClassVar[int] = 1


class UnknownPart(SetupError):
    """PARTS names a directory that envs/ has not."""

    exit_status = 2


class PackagesMissing(SetupError):
    """Programs are missing that this user can't install."""

    exit_status = 3


class PythonMissing(SetupError):
    """There is no Python to use, or it can't install anything."""

    exit_status = 4


class DownloadFailed(SetupError):
    """Something could not be had from a package index."""

    exit_status = 5


class InTheWay(SetupError):
    """A file, directory or lock that set-up may not touch stands where it has to write."""

    exit_status = 6
