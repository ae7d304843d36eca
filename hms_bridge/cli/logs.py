"""``--log-format`` and ``--log-level``: what daemons and their verbs write to standard error."""

from __future__ import annotations

import functools
import json
import logging
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime
from functools import partial

import click

from changemanager.masking import masked_text
from hms_bridge.cli.output import redirected_to

LOG_FORMATS = ("text", "json")
LOG_LEVELS = ("debug", "info", "warning", "error")
_TEXT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
_OTHER_BREAKS = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff]")
"""What JSON leaves as it is, but line readers split at, or no encoding has."""
_PACKAGES = ("hms_bridge", "changemanager", "cleaner")


class JsonFormatter(logging.Formatter):
    """One JSON object a line: time, level, logger, message; deed and facts of a journal record."""

    def format(self, record: logging.LogRecord) -> str:
        """A line without line breaks."""
        moment = datetime.fromtimestamp(record.created, UTC)
        line: dict[str, object] = {
            "time": moment.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": masked_text(record.getMessage()),
        }
        if _is_forked(record):
            line["process"] = record.processName
        deed = getattr(record, "deed", None)
        if deed is not None:
            line |= {"deed": deed, **getattr(record, "facts", {})}
        if record.exc_info:
            line["error"] = masked_text(self.formatException(record.exc_info))
        text = json.dumps(line, ensure_ascii=False, default=str)
        return _OTHER_BREAKS.sub(lambda character: f"\\u{ord(character[0]):04x}", text)


class TextFormatter(logging.Formatter):
    """For people: one line for each record, whatever names it has, and tracebacks below it."""

    def __init__(self) -> None:
        super().__init__(_TEXT)

    def format(self, record: logging.LogRecord) -> str:
        """Without secrets of URLs, tracebacks included."""
        return masked_text(super().format(record))

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 (logging's name)
        """With control characters as ``\\n``: what a client names must not look like a line."""
        record.message = "".join(
            character
            if character.isprintable()
            else character.encode("unicode_escape").decode("ascii")
            for character in record.message
        )
        if _is_forked(record):
            record.message = f"{record.processName}: {record.message}"
        return super().formatMessage(record)


def _is_forked(record: logging.LogRecord) -> bool:
    """Whether a server's lines come from several processes."""
    return record.processName not in (None, "MainProcess")


def logging_options(command: Callable[..., object]) -> Callable[..., object]:
    """The two options, for verbs that delete, archive, purge or compact."""

    @click.option(
        "--log-format",
        type=click.Choice(LOG_FORMATS),
        default="text",
        show_default=True,
        help="Lines for people, or one JSON object a line, on standard error.",
    )
    @click.option(
        "--log-level",
        type=click.Choice(LOG_LEVELS),
        help="info tells every deletion, archived file, purge, compaction and drop.  "
        "[default: info; debug with --verbose]",
    )
    @functools.wraps(command)
    def with_logs(
        *args: object, log_format: str, log_level: str | None, **kwargs: object
    ) -> object:
        context = click.get_current_context(silent=True)
        group_options = context.find_root().obj if context is not None else None
        is_verbose = bool((group_options or {}).get("verbose"))
        with logs(log_level or ("debug" if is_verbose else "info"), log_format):
            return command(*args, **kwargs)

    return with_logs


def _log_line(handler: logging.Handler, text: str) -> None:
    """What a person reads, at every level: who starts a server waits for its line."""
    fields = {"name": "hms_bridge", "levelno": logging.INFO, "levelname": "INFO", "msg": text}
    handler.handle(logging.makeLogRecord(fields))


@contextmanager
def logs(level: str, log_format: str) -> Iterator[None]:
    """Write the log of our packages in a format, from a level on, for the length of a block."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter() if log_format == "json" else TextFormatter())
    root = logging.getLogger()
    replaced = [other for other in root.handlers if type(other) is logging.StreamHandler]
    loggers = [logging.getLogger(name) for name in _PACKAGES]
    levels = [logger.level for logger in loggers]
    for other in replaced:
        root.removeHandler(other)
    root.addHandler(handler)
    for logger in loggers:
        logger.setLevel(level.upper())
    try:
        with redirected_to(partial(_log_line, handler)) if log_format == "json" else nullcontext():
            yield
    finally:
        root.removeHandler(handler)
        for other in replaced:
            root.addHandler(other)
        for logger, before in zip(loggers, levels, strict=True):
            logger.setLevel(before)
