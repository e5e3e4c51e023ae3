"""Users inside the lab: the host's, and one more where no ordinary user is at hand.

The host's own files are not touched: the texts made here cover /etc/passwd, /etc/group and
/etc/shadow in the lab's name spaces.
"""

import itertools
import os
import pwd
from dataclasses import dataclass
from pathlib import Path

from burstlab.errors import ConfigurationError

DEFAULT_USER = "lab"
FIRST_UID = 20000


@dataclass(frozen=True)
class Account:
    """An ordinary user."""

    name: str
    uid: int
    gid: int
    home: Path


def default_user() -> str:
    """The ordinary user who called sudo, else the lab's own user."""
    caller = os.environ.get("SUDO_USER", "root")
    return DEFAULT_USER if caller == "root" else caller


def account(name: str, home: Path) -> Account:
    """The host's user ``name``, or the lab's own one with ``home``.

    Raises ConfigurationError for a name that is neither, and for root.
    """
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        if name != DEFAULT_USER:
            raise ConfigurationError(
                f"--user {name}: no such user; without --user the lab makes {DEFAULT_USER!r}"
            ) from None
        used = {entry.pw_uid for entry in pwd.getpwall()}
        uid = next(uid for uid in itertools.count(FIRST_UID) if uid not in used)
        return Account(name, uid, uid, home)
    if entry.pw_uid == 0:
        raise ConfigurationError("--user root: jobs run as an ordinary user")
    return Account(name, entry.pw_uid, entry.pw_gid, Path(entry.pw_dir))


def passwd_text(host: str, account: Account) -> str:
    """The host's /etc/passwd, with ``account`` in it."""
    line = f"{account.name}:x:{account.uid}:{account.gid}:user of the lab:{account.home}:/bin/bash"
    return _with(host, account.name, line)


def group_text(host: str, account: Account) -> str:
    """The host's /etc/group, with a group for ``account``."""
    if any(line.split(":")[2:3] == [str(account.gid)] for line in host.splitlines()):
        return host
    return _with(host, account.name, f"{account.name}:x:{account.gid}:")


def shadow_text(passwd: str) -> str:
    """/etc/shadow for a passwd: no passwords, nobody locked, for sshd refuses locked users."""
    return "".join(f"{line.split(':')[0]}:*:20000:0:99999:7:::\n" for line in passwd.splitlines())


def _with(text: str, name: str, line: str) -> str:
    if any(entry.split(":", 1)[0] == name for entry in text.splitlines()):
        return text
    return f"{text.rstrip()}\n{line}\n"
