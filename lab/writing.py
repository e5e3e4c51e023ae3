"""Makes the files of a lab, before anything of it runs."""

import os
from pathlib import Path

from lab import accounts, network, schedulers, ssh
from lab.accounts import Account
from lab.layout import Lab


def write(lab: Lab, account: Account) -> None:
    """Fill the lab's directory, which exists and is empty."""
    for path in (lab.etc / "ssh", lab.log, lab.directory / "root", lab.pfs_backing, lab.home):
        path.mkdir(parents=True)
    lab.pfs_backing.chmod(0o1777)
    lab.home.chmod(0o700)
    os.chown(lab.home, account.uid, account.gid)
    lab.save()
    passwd = accounts.passwd_text(Path("/etc/passwd").read_text(), account)
    texts = {
        "passwd": passwd,
        "group": accounts.group_text(Path("/etc/group").read_text(), account),
        "shadow": accounts.shadow_text(passwd),
        "hosts": network.hosts_text(lab),
        "ssh/ssh_config": ssh.ssh_config_text(lab),
    }
    for name, text in texts.items():
        (lab.etc / name).write_text(text)
    (lab.etc / "shadow").chmod(0o600)
    ssh.write(lab, account)
    schedulers.of(lab).write(lab, account)
