"""What ``hms-bridge repl run`` shows a monitor."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hms_bridge.cli.output import say

if TYPE_CHECKING:
    from hms_bridge.connect import LocalStore


def cycle_metrics_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """``--metrics`` and ``--metrics-port``."""
    for option in (
        click.option(
            "--metrics-port",
            type=click.IntRange(0, 65535),
            help="With --every: tell metrics over HTTP there, at /metrics; 0 picks a free one.",
        ),
        click.option(
            "--metrics",
            "metrics_file",
            type=click.Path(path_type=Path, dir_okay=False),
            metavar="FILE",
            help="Write metrics there after each cycle, for node_exporter's textfile collector: "
            "NAME.prom in its directory.",
        ),
    ):
        command = option(command)
    return command


@dataclass(slots=True)
class CycleNews:
    """Writes what a monitor reads of policies (None: of all) into a file, if there is one."""

    store: LocalStore
    policies: Collection[str] | None
    file: Path | None
    is_lost: bool = False
    """Whether the last news did not get there; of old ones a monitor would think that all is
    well."""

    def write(self) -> None:
        """As it is now. Raises what the store raises."""
        if self.file is None:
            return
        from hms_bridge.metrics.cycle_metrics import cycle_samples
        from hms_bridge.metrics.textfile import write_textfile

        try:
            write_textfile(self.file, cycle_samples(self.store.policies, self.policies))
            self.is_lost = False
        except OSError as error:
            say(f"--metrics: {self.file} cannot be written: {error}")
            self.is_lost = True


@contextmanager
def cycles_told(
    store: LocalStore, policies: Collection[str], file: Path | None, port: int | None
) -> Iterator[CycleNews]:
    """Metrics of policies (none: of all) for the length of a block: over HTTP, into a file, both
    or neither. Raises ConfigError for a port that cannot be used."""
    chosen = policies or None
    with ExitStack() as stack:
        if port is not None:
            from hms_bridge.cli.serve_metrics import figures_served
            from hms_bridge.metrics.cycle_metrics import cycle_figure

            figures = [cycle_figure(store.policies, chosen)]
            stack.enter_context(figures_served(figures, store.settings.metrics, port))
        news = CycleNews(store, chosen, file)
        news.write()
        yield news
