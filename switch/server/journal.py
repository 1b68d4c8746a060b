"""The log of a served switch, in the form of BMv2's: `[12:34:56.789] [bmv2] [I] [thread 1234] text`."""

from __future__ import annotations

import logging
import sys
from logging.handlers import RotatingFileHandler
from pathlib import Path

from inakit.switch.server.options import LogOptions
from inakit.topo.errors import writing

TRACE = 5
LEVELS = {
    "trace": TRACE,
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warn": logging.WARNING,
    "error": logging.ERROR,
    "off": logging.CRITICAL + 1,
}
LETTERS = {TRACE: "T", logging.DEBUG: "D", logging.INFO: "I", logging.WARNING: "W", logging.ERROR: "E"}


class Lines(logging.Formatter):
    """Writes a line as BMv2 does."""

    def format(self, record: logging.LogRecord) -> str:
        """The line of a record."""
        time = f"{self.formatTime(record, '%H:%M:%S')}.{int(record.msecs):03d}"
        return f"[{time}] [bmv2] [{LETTERS[record.levelno]}] [thread {record.thread}] {record.getMessage()}"


class Journal:
    """What the switch tells: events for people on standard error, where no log was asked for; else into the log."""

    def __init__(self, options: LogOptions = LogOptions()) -> None:  # noqa: B008, it is immutable
        self.options = options
        self.logger = logging.Logger("bmv2", LEVELS[options.level or "trace"])
        self.logger.addHandler(handler_of(options))

    def step(self, text: str) -> None:
        """Tell of a step of a packet."""
        self.logger.debug(text)

    def info(self, text: str) -> None:
        """Tell of something that happens as it should."""
        self.logger.info(text)

    def warn(self, text: str) -> None:
        """Tell of something that the user may want to change."""
        self.logger.warning(text)

    def error(self, text: str) -> None:
        """Tell of something that is wrong."""
        self.logger.error(text)

    def close(self) -> None:
        """Write what is left."""
        for handler in list(self.logger.handlers):
            handler.close()


def handler_of(options: LogOptions) -> logging.Handler:
    """Where lines go."""
    console: logging.Handler = logging.StreamHandler(sys.stdout if options.console else sys.stderr)
    handler = console if options.file is None else file_handler(options, options.file)
    handler.setFormatter(Lines())
    return handler


def file_handler(options: LogOptions, file: Path) -> logging.Handler:
    """What writes into `file`.txt, and moves what is too much to `file`.1.txt and so on, as BMv2 does."""
    path = file.with_name(f"{file.name}.txt")
    with writing(path):
        handler = RotatingFileHandler(path, maxBytes=options.most_bytes, backupCount=options.most_files)
    handler.namer = lambda name: f"{path.with_suffix('')}.{name.rpartition('.')[2]}.txt"
    return handler
