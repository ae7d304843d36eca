"""How a load copies, as ``repl load`` and ``repl run`` are asked for it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

import click


@dataclass(frozen=True, kw_only=True, slots=True)
class CopyOptions:
    """``is_quick``: before anything is changed files are looked for by name only,
    ``is_read_first``: every byte is read. ``bandwidth``: bytes a second, as people write them.
    What is not given is as the settings say."""

    is_quick: bool = False
    is_read_first: bool = False
    bandwidth: str | None = None


def copy_options(command: Callable[..., object]) -> Callable[..., object]:
    """``--quick``, ``--check-first`` and ``--bandwidth``; the verb gets ``copying``."""

    @click.option(
        "--quick", "is_quick", is_flag=True, help="Look for all files by name only at first."
    )
    @click.option(
        "--check-first",
        "is_read_first",
        is_flag=True,
        help="Read every byte before anything is changed, and again as it is copied.  "
        "[default: setting]",
    )
    @click.option(
        "--bandwidth",
        metavar="SIZE",
        help="Copy so much a second at most, such as 50MiB.  [default: setting]",
    )
    @functools.wraps(command)
    def with_copying(
        *args: object, is_quick: bool, is_read_first: bool, bandwidth: str | None, **kwargs: object
    ) -> object:
        if is_quick and is_read_first:
            raise click.UsageError(
                "--quick looks at names only, --check-first at every byte: give one"
            )
        copying = CopyOptions(is_quick=is_quick, is_read_first=is_read_first, bandwidth=bandwidth)
        return command(*args, copying=copying, **kwargs)

    return with_copying
