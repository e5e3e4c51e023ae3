"""Hadoop's configuration for one cell: what differs from its defaults, and why."""

import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

from failure import Failed
from installation import Hadoop
from parameters import Parameters, Place

from burstlab.lease import MARKER

HEAP_SHARE = 0.8  # of a container's memory: mapreduce.job.heap.memory-mb.ratio
# A container has one core's worth of work; performance data would be left in /tmp by a killed JVM.
SERIAL = ("-XX:+UseSerialGC", "-XX:-UsePerfData")
NODE_MARK = "TERASORT_NODE"  # tells the containers of one node from those of another on its host
LOG4J = """\
log4j.rootLogger=INFO,console
log4j.appender.console=org.apache.log4j.ConsoleAppender
log4j.appender.console.target=System.err
log4j.appender.console.layout=org.apache.log4j.PatternLayout
log4j.appender.console.layout.ConversionPattern=%d{ISO8601} %p %c{2}: %m%n
"""
# Four sockets listen on all addresses of their host, as Hadoop 3.4.2 has no setting for it: the
# shuffle (ShuffleHandler binds a port alone), and of a job's master its two RPC servers
# (MRClientService, TaskAttemptListenerImpl) and its web page (WebApps). Of the master's only the
# ports can be chosen (yarn.app.mapreduce.am.*.port-range), and that they are not those of IPv6.
IPV4 = "-Djava.net.preferIPv4Stack=true"
BRIEF = "-XX:TieredStopAtLevel=1"  # of who lives for minutes and is not measured
# Of the daemons on the cell's first host; the others take any free one and tell it.
PORTS = ("scheduler", "tracker", "client", "admin", "web", "history", "history_admin",
         "history_web")  # fmt: skip
# Variables of a NodeManager that its containers get; nothing else of its environment reaches them.
KEPT = ("JAVA_HOME", "PATH", "LANG", "TZ", MARKER, "BURSTLAB_STATE", NODE_MARK)
Settings = dict[str, str | int]


@dataclass(frozen=True)
class Configuration:
    """One cell's, the same on all its hosts."""

    place: Place
    parameters: Parameters
    hadoop: Hadoop
    ports: Mapping[str, int]

    def files(self) -> dict[str, str]:
        """Name and text of each file of the configuration directory."""
        return {
            "core-site.xml": _document(self._core()),
            "yarn-site.xml": _document(self._yarn()),
            "mapred-site.xml": _document(self._mapred()),
            "log4j.properties": LOG4J,
        }

    def options(self) -> tuple[str, ...]:
        """Of the JVM of daemons and clients, on every host."""
        return (
            *SERIAL,
            BRIEF,
            "-Xmx1g",
            "--add-opens=java.base/java.lang=ALL-UNNAMED",
            IPV4,
            f"-Djava.io.tmpdir={self.place.local}/terasort/tmp",
        )

    def web(self, daemon: str) -> str:
        """Where a daemon answers over REST: to this host only, for it asks nobody who they are."""
        return f"127.0.0.1:{self.ports[daemon]}"

    def _core(self) -> Settings:
        hosts = ",".join(_addresses(self.place))
        return {
            "fs.defaultFS": "file:///",
            "hadoop.tmp.dir": f"{self.place.local}/terasort/tmp",
            # Whoever reaches a port may submit a job in our name, unless it is asked whence.
            "hadoop.security.authorization": "true",
            "security.service.authorization.default.hosts": hosts,
        }

    def _yarn(self) -> Settings:
        place, parameters, ports = self.place, self.parameters, self.ports
        manager = "yarn.resourcemanager"
        return {
            f"{manager}.hostname": place.here,
            f"{manager}.scheduler.address": f"{place.here}:{ports['scheduler']}",
            f"{manager}.resource-tracker.address": f"{place.here}:{ports['tracker']}",
            f"{manager}.address": f"{place.here}:{ports['client']}",
            f"{manager}.admin.address": f"{place.here}:{ports['admin']}",
            f"{manager}.webapp.address": self.web("web"),
            f"{manager}.scheduler.class": f"org.apache.hadoop.{_FIFO}",
            f"{manager}.am.max-attempts": 1,  # what ran twice is not a measurement
            f"{manager}.connect.retry-interval.ms": 1000,
            "yarn.nm.liveness-monitor.expiry-interval-ms": 30_000,
            "yarn.node-attribute.fs-store.root-dir": f"file://{place.local}/terasort/attributes",
            "yarn.scheduler.minimum-allocation-mb": parameters.container_memory_mb,
            "yarn.scheduler.maximum-allocation-mb": parameters.node_memory_mb,
            "yarn.nodemanager.resource.memory-mb": parameters.node_memory_mb,
            "yarn.nodemanager.vmem-check-enabled": "false",  # a JVM reserves 3 GB and more
            "yarn.nodemanager.aux-services": "mapreduce_shuffle",
            "yarn.nodemanager.aux-services.mapreduce_shuffle.class": _SHUFFLE,
            "yarn.nodemanager.webapp.address": "127.0.0.1:0",
            "yarn.nodemanager.env-whitelist": ",".join(KEPT),
            "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage": 99,
            "yarn.application.classpath": self.hadoop.classpath,
        }

    def _mapred(self) -> Settings:
        place, mount, memory = self.place, self.place.mount, self.parameters.container_memory_mb
        history, serial, heap = "mapreduce.jobhistory", " ".join(SERIAL), int(HEAP_SHARE * memory)
        return {
            "mapreduce.framework.name": "yarn",
            "mapreduce.application.classpath": self.hadoop.classpath,
            "yarn.app.mapreduce.am.staging-dir": f"file://{mount}/staging",
            "yarn.app.mapreduce.am.resource.mb": memory,
            "yarn.app.mapreduce.am.command-opts": f"-Xmx{heap}m {BRIEF} {IPV4} {serial}",
            "mapreduce.map.memory.mb": memory,
            "mapreduce.reduce.memory.mb": memory,
            "mapreduce.map.java.opts": serial,
            "mapreduce.reduce.java.opts": serial,
            "mapreduce.map.maxattempts": 1,
            "mapreduce.reduce.maxattempts": 1,
            "mapreduce.map.speculative": "false",
            "mapreduce.reduce.speculative": "false",
            "mapreduce.task.io.sort.factor": self.parameters.sort_factor,
            "mapreduce.shuffle.port": 0,
            f"{history}.address": f"{place.here}:{self.ports['history']}",
            f"{history}.admin.address": f"{place.here}:{self.ports['history_admin']}",
            f"{history}.webapp.address": self.web("history_web"),
            f"{history}.intermediate-done-dir": f"file://{mount}/history/tmp",
            f"{history}.done-dir": f"file://{mount}/history/done",
            f"{history}.jhist.format": "json",  # Avro's own is not for others to read
        }


_FIFO = "yarn.server.resourcemanager.scheduler.fifo.FifoScheduler"
_SHUFFLE = "org.apache.hadoop.mapred.ShuffleHandler"


def write(directory: Path, files: Mapping[str, str]) -> None:
    """The configuration directory."""
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (directory / name).write_text(text)


def _addresses(place: Place) -> list[str]:
    """Of the cell's hosts. Raises Failed for a name that has none."""
    found = {"127.0.0.1"}
    for host in () if place.alone else place.hosts:
        try:
            found.add(socket.gethostbyname(host))
        except OSError as error:
            raise Failed(f"{host}: its name can't be resolved: {error.strerror}") from error
    return sorted(found)


def _document(settings: Settings) -> str:
    rows = "".join(
        f"  <property><name>{name}</name><value>{escape(str(value))}</value></property>\n"
        for name, value in settings.items()
    )
    return f'<?xml version="1.0"?>\n<configuration>\n{rows}</configuration>\n'
