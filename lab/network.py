"""The lab's network: one switch (a bridge) in the site, one cable (a veth pair) per machine.

All of it lives in network name spaces of the lab's own; the host has no interface, address or
route of it. The texts are batches for ip(8) and tc(8).
"""

import subprocess
from pathlib import Path

from burstlab.errors import BurstlabError
from lab.layout import PREFIX, Lab

SWITCH = "switch"


def hosts_text(lab: Lab) -> str:
    """/etc/hosts of all machines."""
    lines = ["127.0.0.1 localhost"]
    lines += [f"{lab.address(machine)} {machine}" for machine in lab.machines]
    return "\n".join(lines) + "\n"


def switch_batch() -> str:
    """Makes the switch."""
    return f"link set lo up\nlink add {SWITCH} type bridge\nlink set {SWITCH} up\n"


def plug_batch(machine: str) -> str:
    """Makes the machine's name space and its cable to the switch."""
    return (
        f"netns add {machine}\n"
        f"link add {machine} type veth peer name eth0 netns {machine}\n"
        f"link set {machine} master {SWITCH} up\n"
    )


def interface_batch(lab: Lab, machine: str) -> str:
    """Sets up the machine's end of the cable, inside its name space.

    The hardware address is the same after every boot, as the others remember it.
    """
    number = int(lab.address(machine).rpartition(".")[2])
    return (
        "link set lo up\n"
        f"link set eth0 address 02:00:00:00:00:{number:02x}\n"
        f"addr add {lab.address(machine)}/24 broadcast {PREFIX}.255 dev eth0\n"
        "link set eth0 up\n"
    )


def shape_batch(device: str, mbit: int) -> str:
    """A token bucket on what leaves through ``device``; the burst lasts 2 ms, 64 KiB at least."""
    burst = max(64 * 1024, mbit * 1_000_000 // 8 // 500)
    return f"qdisc add dev {device} root tbf rate {mbit}mbit burst {burst} latency 50ms\n"


def plug(lab: Lab, machine: str) -> None:
    """Connect a machine to the switch; in the site's name spaces. Raises BurstlabError."""
    if Path("/run/netns", machine).exists():  # of the machine's last life, with the old cable,
        batch("ip", f"link delete {machine}\nnetns delete {machine}\n")  # which lingers alone
    batch("ip", plug_batch(machine))
    batch("ip", interface_batch(lab, machine), "-n", machine)
    if lab.shape_mbit:
        batch("tc", shape_batch(machine, lab.shape_mbit))
        batch("tc", shape_batch("eth0", lab.shape_mbit), "-n", machine)


def batch(program: str, text: str, *options: str) -> None:
    """Run a batch of ip or tc. Raises BurstlabError with what it said."""
    done = subprocess.run(
        [program, *options, "-batch", "-"], input=text, capture_output=True, text=True
    )
    if done.returncode != 0:
        said = " ".join(done.stderr.split())
        raise BurstlabError(f"{program} can't set up the lab's network: {said}")
