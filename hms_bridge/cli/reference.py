"""Writes the pages that are generated from the code: settings, verbs, metrics, wire methods,
the template of hive-site."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from xml.sax.saxutils import escape

import click

from hms_bridge.cli.main import cli
from hms_bridge.config.protection import PROTECTIONS
from hms_bridge.config.settings import KEYS
from hms_bridge.metrics.reference import metrics_page
from hms_bridge.server.reference import wire_methods_page

_ROOT = Path(__file__).parents[2]


def pages() -> dict[str, str]:
    """Path below the project's root, and text."""
    return {
        "docs/reference/settings.md": _settings_page(),
        "docs/reference/cli.md": _cli_page(),
        "docs/reference/metrics.md": metrics_page(),
        "docs/reference/wire-methods.md": wire_methods_page(),
        "conf/hive-site.xml.template": _template(),
    }


def write_pages(root: Path = _ROOT) -> None:
    """Each page below ``root`` at the path that it is named by; directories are made."""
    for name, text in pages().items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def _settings_page() -> str:
    lines = [
        "# Settings",
        "",
        "Read from a `hive-site.xml` (`--config`, else `HMS_BRIDGE_CONFIG`, else that of",
        "`HIVE_CONF_DIR` or `METASTORE_CONF_DIR`), and from `--set key=value`, which wins.",
        "`hivemetastore-site.xml` and",
        "`metastore-site.xml` beside a `hive-site.xml` go after it, as in Hive's metastore.",
        "`--metastore` may stand in `HMS_BRIDGE_METASTORE`. Names,",
        "defaults and units are Hive's unless the name begins with `hms.bridge.`.",
        "Durations take `d`, `h`, `m`, `s`, `ms`; the unit of a bare number stands in the table.",
        "",
        "| setting | also written | kind | default | bare number | meaning |",
        "|---|---|---|---|---|---|",
    ]
    for key in KEYS:
        aliases = ", ".join(f"`{alias}`" for alias in key.aliases)
        default = f"`{key.default}`" if key.default else ""
        lines.append(
            f"| `{key.name}` | {aliases} | {key.kind} | {default} | {key.unit} | {key.doc} |"
        )
    return "\n".join([*lines, "", *_protections()]) + "\n"


def _protections() -> Iterator[str]:
    yield from (
        "## Settings that ask for protection",
        "",
        "hms-bridge does not give these protections yet. A value that asks for one stops what",
        "stands in the last column, with an error that names setting, value and file, instead of",
        "being passed over. `--set NAME=VALUE` takes the demand back for one command.",
        "",
        "| setting | also written | asks for nothing | any other value means | stops |",
        "|---|---|---|---|---|",
    )
    for protection in PROTECTIONS:
        name, *aliases = protection.names
        idle = ", ".join(f"`{value}`" for value in protection.idle) or "empty"
        if protection.asks is not None:
            idle = "a list without an authorizer"
        stops = ", ".join(what.value for what in protection.protects)
        yield (
            f"| `{name}` | {', '.join(f'`{alias}`' for alias in aliases)} | {idle} | "
            f"{protection.meaning} | {stops} |"
        )


def _template() -> str:
    lines = ['<?xml version="1.0"?>', "<!-- Every setting with its default. -->", "<configuration>"]
    for key in KEYS:
        lines += [
            "  <property>",
            f"    <name>{key.name}</name>",
            f"    <value>{escape(key.default)}</value>",
            f"    <description>{escape(key.doc)}</description>",
            "  </property>",
        ]
    return "\n".join([*lines, "</configuration>"]) + "\n"


def _cli_page() -> str:
    codes = (
        "Exit codes: 0 ok, 1 failed, 2 usage (what is typed has not the right form). A setting "
        "that is unknown or has a bad value is 1, wherever it was given. Verbs that compare, look "
        "or try have codes for what they find: their help says which."
    )
    lines = ["# The program hms-bridge", "", codes, ""]
    for path, command in _commands(cli, "hms-bridge"):
        context = click.Context(command, info_name=path, max_content_width=100, terminal_width=100)
        lines += [f"## {path}", "", "```", command.get_help(context).rstrip(), "```", ""]
    return "\n".join(lines)


def _commands(command: click.Command, path: str) -> Iterator[tuple[str, click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command, info_name=path)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            if inner is not None:
                yield from _commands(inner, f"{path} {name}")


if __name__ == "__main__":
    write_pages()
