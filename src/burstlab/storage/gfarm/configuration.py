"""The configuration files of one Gfarm instance, as texts (gfarm2.conf(5)).

What Gfarm's own config-gfarm and config-gfsd write in private mode (-S), without their 60 ms of
shell, and without their chown of the spool to `_gfarmfs` when root runs them: the user map says
that the user who starts the daemons is both `_gfarmfs` and `_gfarmmd`, so root needs no more
than an ordinary user.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

LOCAL = "localhost"


@dataclass(frozen=True)
class Instance:
    """One Gfarm, seen from one of its nodes."""

    directory: Path  # of this node: configuration, key, spool, logs
    user: str
    server: str  # host of gfmd, as every node can resolve it
    port: int  # of gfmd, TCP
    host: str  # what Gfarm calls this node

    @property
    def client_configuration(self) -> Path:
        """For GFARM_CONFIG_FILE."""
        return self.directory / "gfarm2.conf"

    @property
    def key(self) -> Path:
        """The shared secret of this instance."""
        return self.directory / "key"

    @property
    def spool(self) -> Path:
        """Where gfsd keeps this node's files."""
        return self.directory / "spool"

    def log(self, program: str) -> Path:
        """What a daemon says."""
        return self.directory / f"{program}.log"


# Without these a client of a dead server hangs for minutes: the defaults are 30 s and more, and
# they add up.
_TIME_OUTS_S = {
    "no_file_system_node_timeout": 5,
    "gfmd_reconnection_timeout": 5,
    "gfmd_authentication_timeout": 10,
    "schedule_rpc_timeout": 10,
    "network_receive_timeout": 20,
}

# A burst buffer's nodes are busy by design, and their disks small: neither may make Gfarm write
# to another node, for that would change what is measured. A full disk is an error.
_SCHEDULING = {
    "schedule_idle_load_thresh": 200,
    "schedule_busy_load_thresh": 200,
    "minimum_free_disk_space": 0,
}


def files(instance: Instance) -> dict[str, str]:
    """Every configuration file of a node by its name in the instance's directory."""
    return {
        "usermap": f"_gfarmfs {instance.user}\n_gfarmmd {instance.user}\n",
        "gfarm2.conf": client(instance),
        "gfsd.conf": filesystem_node(instance),
        "gfmd.conf": metadata_server(instance),
    }


def client(instance: Instance) -> str:
    """gfarm2.conf, for gfarm2fs and the command line tools."""
    return _text(_common(instance) | _TIME_OUTS_S | _SCHEDULING | {"gfsd_connection_cache": 256})


def filesystem_node(instance: Instance) -> str:
    """gfsd.conf. The spool is new, so there is nothing in it to check."""
    return _text(
        _common(instance)
        | _TIME_OUTS_S
        | {"local_user_map": instance.directory / "usermap", "spool_check_level": "disable"}
    )


def metadata_server(instance: Instance) -> str:
    """gfmd.conf: metadata in memory only, nothing replicated, nothing patrolled."""
    return _text(
        _common(instance)
        | _SCHEDULING
        | {
            "admin_user": instance.user,
            "local_user_map": instance.directory / "usermap",
            "metadb_db_access_type": "none",
            "metadb_replication": "disable",
            "metadb_server_listen_backlog": 2048,
            "metadb_server_max_descriptors": 16384,
            "metadb_server_long_term_lock_type": "mutex",
            "metadb_server_nfs_root_squash_support": "disable",
            "atime": "disable",
            "replica_check": "disable",
        }
    )


def mount_options(needs: Iterable[str]) -> str:
    """Options of gfarm2fs for a workload with these needs.

    The bare default cuts writes into 4 KiB. direct_io is the fastest, but refuses a shared
    mapping (mmap(2) MAP_SHARED, also for reading) with ENODEV; big_writes allows it.
    """
    return "big_writes" if "mmap" in needs else "direct_io"


def _common(instance: Instance) -> dict[str, object]:
    who = LOCAL if instance.server == LOCAL else "*"
    return {
        "metadb_server_host": instance.server,
        "metadb_server_port": instance.port,
        "auth": f"enable sharedsecret {who}",
        "shared_key_file": instance.key,
        "sockopt": "keepalive",
    }


def _text(statements: dict[str, object]) -> str:
    return "".join(f"{name} {value}\n" for name, value in statements.items())
