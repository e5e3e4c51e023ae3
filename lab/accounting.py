"""Job accounting of a Slurm lab: slurmdbd and a MariaDB of its own, on the head.

Sources: slurmdbd.conf(5), mariadb-install-db(1). MariaDB knows root by its unix socket, so there
is no password.
"""

import subprocess
from pathlib import Path

from burstlab.errors import BurstlabError
from burstlab.supervision import last_words
from lab import namespaces
from lab.layout import HEAD, Lab
from lab.schedulers import Launch

PROGRAMS = (
    "/usr/sbin/slurmdbd",
    "/usr/sbin/mariadbd",
    "/usr/bin/mariadb-install-db",
)
PORT = 6819
SOCKET = Path("/run/mysqld/mysqld.sock")  # where Debian's libmariadb looks
# The data outlives a killed head in the page cache and need not outlive this host: no fsync.
INNODB = (
    "--innodb-log-file-size=8M",
    "--innodb-flush-method=nosync",
    "--innodb-flush-log-at-trx-commit=2",  # 0 loses the last second when the head is killed
)


def slurmdbd_conf_text() -> str:
    """slurmdbd.conf(5)."""
    return f"""\
AuthType=auth/munge
DbdHost={HEAD}
SlurmUser=root
PidFile=/run/slurmdbd.pid
LogFile=/var/log/slurmdbd.log
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=root
StorageLoc=slurm_acct_db
"""


def write(etc: Path) -> None:
    """slurmdbd refuses a configuration that others can read."""
    path = etc / "slurmdbd.conf"
    path.touch(0o600)
    path.write_text(slurmdbd_conf_text())


def start(lab: Lab, launch: Launch) -> None:
    """On the head, before slurmctld, which registers the cluster. Raises BurstlabError."""
    data = lab.own(HEAD) / "mariadb"
    where = ["--no-defaults", "--user=root", f"--datadir={data}", *INNODB]
    SOCKET.parent.mkdir(exist_ok=True)
    if not data.exists():
        _install([*where, "--skip-test-db"])
    socket = [f"--socket={SOCKET}", "--skip-networking"]
    launch("mariadbd", ["/usr/sbin/mariadbd", *where, *socket], SOCKET.exists)
    launch("slurmdbd", ["/usr/sbin/slurmdbd", "-D"], lambda: namespaces.listening(PORT))


def _install(options: list[str]) -> None:
    command = ["mariadb-install-db", *options]
    environment = {"PATH": namespaces.PATH}
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment)
    if done.returncode != 0:
        said = last_words(done.stderr.strip() or done.stdout)
        raise BurstlabError(f"mariadb-install-db: {said}")
