"""What a test needs of the machine: ``@pytest.mark.requires("fuse", "montage")``.

A part is a capability of the machine (``burstlab.doctor.capabilities``) or a directory of
``envs/``, all of whose commands must be found. Where a part is missing the test is skipped, and
the end of the run says which and why. With BURSTLAB_REQUIRE_ALL=1, as CI sets it, a skip is an
error, but for the parts the table calls optional. Any other way to skip is an error there too.
"""

import os
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from burstlab.doctor import environments
from burstlab.doctor.capabilities import CAPABILITIES, environment_problem

ROOT = Path(__file__).resolve().parents[1]
MISSING = "not tested"
REQUIRE_ALL = os.environ.get("BURSTLAB_REQUIRE_ALL") == "1"


class Requirements:
    """The plugin that skips, or refuses to."""

    def __init__(self) -> None:
        self.missing: Counter[str] = Counter()  # "part: why" -> tests

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        known = [*CAPABILITIES, *_environments()]
        for item in items:
            for part in _parts(item):
                if part not in known:
                    raise pytest.UsageError(
                        f"{item.nodeid}: requires({part!r}): no such part "
                        f"(there are: {', '.join(known)})"
                    )

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        lacking = {part: why for part in _parts(item) if (why := problem(part))}
        if not lacking:
            return
        told = "; ".join(f"{part}: {why}" for part, why in lacking.items())
        for part, why in lacking.items():
            item.user_properties.append((MISSING, f"{part}: {why}{_excuse(part)}"))
        if REQUIRE_ALL and not all(_excuse(part) for part in lacking):
            pytest.fail(f"a required part is missing: {told}", pytrace=False)
        pytest.skip(told)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> object:
        report = yield
        by_itself = report.skipped and not hasattr(report, "wasxfail")
        if by_itself and not any(problem(part) for part in _parts(item)):
            self._skipped_by_itself(report)
        return report

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(self, collector: pytest.Collector) -> object:
        report = yield
        if report.skipped:
            self._skipped_by_itself(report)
        return report

    def _skipped_by_itself(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        why = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        if isinstance(report, pytest.TestReport):  # it may be told to another process than this
            report.user_properties.append((MISSING, f"skipped by itself: {why}"))
        else:
            self.missing[f"skipped by itself: {why}"] += 1
        if REQUIRE_ALL:
            report.outcome = "failed"
            report.longrepr = f"with BURSTLAB_REQUIRE_ALL=1 nothing may skip by itself: {why}"

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when != "teardown":
            self.missing.update(line for name, line in report.user_properties if name == MISSING)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self.missing:
            terminalreporter.section("what was not tested here")
            for line, count in sorted(self.missing.items()):
                terminalreporter.line(f"{count:4} tests  {line}")


@cache
def problem(part: str) -> str | None:
    """Why a part is missing on this machine, or None; looked at once a run."""
    if part in CAPABILITIES:
        return CAPABILITIES[part].problem()
    return environment_problem(_environments()[part])


@cache
def _environments() -> dict[str, environments.Environment]:
    return environments.load(ROOT / "envs")


def _parts(item: pytest.Item) -> list[str]:
    return [str(part) for mark in item.iter_markers("requires") for part in mark.args]


def _excuse(part: str) -> str:
    optional = (CAPABILITIES.get(part) or _environments()[part]).optional
    return f" (optional: {optional})" if optional else ""
