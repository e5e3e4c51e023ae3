"""ssh between all machines, as root and as the job user, with throw-away keys of the lab's own.

The daemons' and the clients' configuration name files below ``ssh/`` of the lab; nothing in a
user's ~/.ssh or the host's /etc/ssh is read or written.
"""

import os
import subprocess
from pathlib import Path

from burstlab.errors import BurstlabError
from lab.accounts import Account
from lab.layout import Lab

SSHD = "/usr/sbin/sshd"
PORT = 22


def folder(lab: Lab) -> Path:
    """Where the keys and configurations lie."""
    return lab.directory / "ssh"


def sshd_config_text(lab: Lab) -> str:
    """sshd_config(5). StrictModes would object to /var/tmp; PAM would write the host's logs."""
    keys = folder(lab)
    return f"""\
Port {PORT}
HostKey {keys / "host"}
AuthorizedKeysFile {keys / "user.pub"}
PidFile none
StrictModes no
UsePAM no
UseDNS no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
MaxStartups 100
MaxSessions 100
PrintMotd no
PrintLastLog no
Subsystem sftp internal-sftp
"""


def ssh_config_text(lab: Lab) -> str:
    """ssh_config(5) for all users of the lab; each has its own copy of the key."""
    keys = folder(lab)
    return f"""\
Host *
    IdentityFile {keys}/%u
    IdentitiesOnly yes
    GlobalKnownHostsFile {keys / "known_hosts"}
    UserKnownHostsFile /dev/null
    StrictHostKeyChecking yes
    BatchMode yes
    ConnectTimeout 10
    LogLevel ERROR
"""


def write(lab: Lab, account: Account) -> None:
    """Make the keys (0600) and the configurations. Raises BurstlabError."""
    keys = folder(lab)
    keys.mkdir(mode=0o755)
    for name in ("host", "user"):
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(keys / name)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise BurstlabError(f"ssh-keygen: {done.stderr.strip()}")
    secret = (keys / "user").read_bytes()
    (keys / "user").unlink()
    for name, uid, gid in (("root", 0, 0), (account.name, account.uid, account.gid)):
        with open(keys / name, "wb", opener=_private) as copy:
            copy.write(secret)
        os.chown(keys / name, uid, gid)
    (keys / "known_hosts").write_text(f"* {(keys / 'host.pub').read_text()}")
    (keys / "sshd_config").write_text(sshd_config_text(lab))


def sshd_command(lab: Lab, machine: str) -> list[str]:
    """The daemon of one machine, in the foreground."""
    config, log = folder(lab) / "sshd_config", f"/var/log/sshd-{machine}.log"
    return [SSHD, "-D", "-f", str(config), "-E", log]


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_EXCL, 0o600)
