"""Grid Engine in the lab: sge_qmaster on the head, sge_execd on every node (Debian's packages).

What the qmaster needs to know lies in its (classic, plain text) spool before it starts; only the
queue is told to it, which makes the queue's instances on the hosts. Sources: the manual pages of
Grid Engine 8.1.9 named below.
"""

import pwd
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from burstlab.errors import BurstlabError
from burstlab.supervision import last_words
from lab.accounts import Account
from lab.gridengine_defaults import CONFIGURATION, QUEUE, SCHEDULING
from lab.layout import HEAD, Lab
from lab.mounts import fstab_line
from lab.namespaces import PATH, answers, listening, wait_until
from lab.schedulers import Launch

ROOT = Path("/var/lib/gridengine")  # $SGE_ROOT of Debian's packages
SPOOL = Path("/var/spool/gridengine")
TOOLS = Path("/usr/lib/gridengine")
ADMINISTRATOR = "sgeadmin"  # Debian's packages make this user
QMASTER_PORT, EXECD_PORT = 6444, 6445
QUEUE_FILE = "queues/all.q"
SPOOLING = f"{ROOT}/default/common;{SPOOL}/qmaster"
PARALLEL_ENVIRONMENT = "nodes"  # qsub -pe nodes 2: one slot on each of two nodes


def programs(lab: Lab) -> tuple[str, ...]:
    """See lab.schedulers."""
    return ("/usr/sbin/sge_qmaster", "/usr/sbin/sge_execd", "/usr/bin/qstat")


def folder(lab: Lab) -> Path:
    """What is shared: $SGE_ROOT, and the templates of the spool."""
    return lab.directory / "gridengine"


def bootstrap_text() -> str:
    """bootstrap(5)."""
    return f"""\
admin_user              {ADMINISTRATOR}
default_domain          none
ignore_fqdn             false
spooling_method         classic
spooling_lib            libspoolc
spooling_params         {SPOOLING}
binary_path             /usr/sbin
qmaster_spool_dir       {SPOOL}/qmaster
security_mode           none
listener_threads        2
worker_threads          2
scheduler_threads       1
"""


def templates(lab: Lab) -> dict[str, str]:
    """Objects of the spool by file name: host_conf(5), queue_conf(5), sge_pe(5), sge_conf(5)."""
    hosts = {f"hosts/{name}": f"hostname {name}\n" for name in lab.machines}
    nodes = {f"exechosts/{name}": f"hostname {name}\n" for name in lab.node_names}
    queue = {**QUEUE, "hostlist": " ".join(lab.node_names), "slots": str(lab.cores)}
    queue["pe_list"] = PARALLEL_ENVIRONMENT
    parallel = {
        "pe_name": PARALLEL_ENVIRONMENT,
        "slots": "999",
        "allocation_rule": "1",
        "control_slaves": "TRUE",
        "job_is_first_task": "FALSE",
        "urgency_slots": "min",
        "accounting_summary": "FALSE",
        "qsort_args": "NONE",
    }
    return {
        **hosts,
        **nodes,
        QUEUE_FILE: lines({"qname": "all.q", **queue}),
        f"pes/{PARALLEL_ENVIRONMENT}": lines(parallel),
        "configuration": lines({**CONFIGURATION, "execd_spool_dir": f"{SPOOL}/execd"}),
    }


def lines(values: Mapping[str, str]) -> str:
    """Attributes as Grid Engine's files have them."""
    return "".join(f"{name} {value}\n" for name, value in values.items())


def write(lab: Lab, account: Account) -> None:
    """See lab.schedulers."""
    root, common = folder(lab) / "root", folder(lab) / "root/default/common"
    common.mkdir(parents=True)
    for name in ("bin", "lib", "utilbin", "util"):  # links to the programs and libraries
        if (ROOT / name).is_symlink():
            (root / name).symlink_to((ROOT / name).readlink())
        else:
            shutil.copytree(ROOT / name, root / name, symlinks=True)
    (common / "bootstrap").write_text(bootstrap_text())
    (common / "act_qmaster").write_text(f"{HEAD}\n")
    (common / "sched_configuration").write_text(lines(SCHEDULING))
    for name, text in templates(lab).items():
        path = folder(lab) / "templates" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    for path in (root / "default", common, *common.iterdir()):
        shutil.chown(path, ADMINISTRATOR, ADMINISTRATOR)


def prepare(lab: Lab, machine: str) -> None:
    """See lab.schedulers."""
    spool = lab.own(machine) / "spool"
    for path in (
        spool / "qmaster/job_scripts",
        spool / "execd",
        lab.own(machine) / "run/gridengine",
    ):
        path.mkdir(parents=True, exist_ok=True)
    for path in (spool / "qmaster", spool / "qmaster/job_scripts", spool / "execd"):
        shutil.chown(path, ADMINISTRATOR, ADMINISTRATOR)
    shutil.chown(lab.own(machine) / "run/gridengine", ADMINISTRATOR, ADMINISTRATOR)


def fstab(lab: Lab, machine: str) -> str:
    """See lab.schedulers."""
    return fstab_line(folder(lab) / "root", ROOT, "none", "bind") + fstab_line(
        lab.own(machine) / "spool", SPOOL, "none", "bind"
    )


def start(lab: Lab, machine: str, launch: Launch) -> None:
    """See lab.schedulers."""
    foreground = ["env", "SGE_ND=true"]
    if machine == HEAD:
        written = folder(lab) / "templates"
        if not (SPOOL / "qmaster/pe").exists():
            fill_spool(written)
        qmaster = [*foreground, "/usr/sbin/sge_qmaster"]
        launch("sge_qmaster", qmaster, lambda: listening(QMASTER_PORT))
        if not (SPOOL / "qmaster/qinstances/all.q").exists():
            _run(TOOLS / "qconf", "-Aq", written / QUEUE_FILE)
    else:
        wait_until(lambda: answers(HEAD, QMASTER_PORT), "sge_qmaster on the head")
        execd = [*foreground, "/usr/sbin/sge_execd"]
        launch("sge_execd", execd, lambda: listening(EXECD_PORT))


def fill_spool(written: Path) -> None:
    """Put everything the qmaster starts with into its spool. Raises BurstlabError."""
    resources = "/usr/share/gridengine/util/resources"
    _run(TOOLS / "spoolinit", "classic", "libspoolc", SPOOLING, "init")
    for kind, source in (
        ("configuration", written / "configuration"),
        ("complexes", f"{resources}/centry"),
        ("usersets", f"{resources}/usersets"),
        ("adminhosts", written / "hosts"),
        ("submithosts", written / "hosts"),
        ("exechosts", written / "exechosts"),
        ("pes", written / "pes"),
    ):
        _run(TOOLS / "spooldefaults", kind, source)
    _run(TOOLS / "spooldefaults", "managers", ADMINISTRATOR, "root")


def states_command() -> list[str]:
    """See lab.schedulers."""
    return ["qstat", "-f", "-q", "all.q"]


def states(text: str) -> dict[str, str]:
    """See lab.schedulers: slots reserved/used/total, and letters for what is wrong (qstat(1))."""
    queue = re.compile(r"^all\.q@(\S+) +\S+ +(\d+/\d+/\d+) +(\S+) +\S+ *(\S*)$", re.MULTILINE)
    return {
        node: f"{slots} {letters or ('unknown' if load == '-NA-' else '')}".rstrip()
        for node, slots, load, letters in queue.findall(text)
    }


def is_ready(state: str) -> bool:
    """See lab.schedulers."""
    return re.fullmatch(r"\d+/\d+/\d+", state) is not None


def _run(program: Path, *arguments: str | Path) -> None:
    administrator = pwd.getpwnam(ADMINISTRATOR)
    done = subprocess.run(
        [program, *arguments],
        capture_output=True,
        text=True,
        env={"PATH": PATH, "SGE_ROOT": str(ROOT), "SGE_CELL": "default"},
        user=administrator.pw_uid,
        group=administrator.pw_gid,
        extra_groups=[],
        timeout=60,
    )
    if done.returncode != 0:
        said = last_words(done.stderr.strip() or done.stdout)
        raise BurstlabError(f"{program.name} {arguments[0]}: {said}")
