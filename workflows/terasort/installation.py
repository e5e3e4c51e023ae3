"""Java and Hadoop as they are installed here, or one line that says what is missing."""

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from failure import Failed

from burstlab.doctor import jars
from burstlab.supervision import ended_how, last_words

# Hadoop 3.4.2 runs on both; on 25 its clients end with `getSubject is not supported`.
JAVA_VERSIONS = (17, 21)
_SETTING = re.compile(r"^\s+(java\.home|java\.version|java\.specification\.version) = (.+)$", re.M)
_VERSION = re.compile(r"hadoop-common-(.+)\.jar")


@dataclass(frozen=True)
class Java:
    """A Java that Hadoop runs on."""

    home: Path
    version: str

    @property
    def program(self) -> str:
        """What to call."""
        return str(self.home / "bin" / "java")


def find_java(home: str | None) -> Java:
    """The Java below ``home`` (JAVA_HOME), else that on PATH. Raises Failed."""
    program = str(Path(home, "bin", "java")) if home else "java"
    found = shutil.which(program)
    told = f"JAVA_HOME={home}" if home else "PATH"
    if found is None:
        raise Failed(f"{told}: no java there: install envs/terasort, or set JAVA_HOME")
    done = subprocess.run(
        [found, "-XX:-UsePerfData", "-XshowSettings:properties", "-version"],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    settings = dict(_SETTING.findall(done.stderr))
    if len(settings) < 3:
        how = ended_how(done.returncode)
        raise Failed(f"{found} tells no version ({how}): {last_words(done.stderr)}")
    major = settings["java.specification.version"]
    if major not in map(str, JAVA_VERSIONS):
        wanted = " or ".join(map(str, JAVA_VERSIONS))
        raise Failed(f"{found} is Java {major}, Hadoop wants {wanted}: set JAVA_HOME to one")
    return Java(Path(settings["java.home"]), settings["java.version"])


@dataclass(frozen=True)
class Hadoop:
    """The jars, in one directory that all hosts see."""

    directory: Path
    version: str

    @property
    def classpath(self) -> str:
        """All of them."""
        return f"{self.directory}/*"


def find_hadoop() -> Hadoop:
    """The jars that HADOOP_JARS names, else those of `make setup`. Raises Failed."""
    if why := jars.problem():
        raise Failed(
            f"{why}: `make setup PARTS=terasort` gets it, or let {jars.GIVEN} name a directory "
            "with the jars of envs/terasort/jars.sha256"
        )
    directory = jars.directory()
    names = (path.name for path in directory.glob("hadoop-common-*.jar"))
    return Hadoop(directory, next(match[1] for name in names if (match := _VERSION.match(name))))
