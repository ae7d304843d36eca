"""Which Spark was asked for, and what its launcher is given. Nothing here imports PySpark.

Order of precedence, highest first: ``--spark`` and ``--master``, ``--spark-properties``, the
environment's PYSPARK_SUBMIT_ARGS and SPARK_MASTER, Spark's own ``spark-defaults.conf`` (of
SPARK_CONF_DIR or SPARK_HOME), and what this project would choose.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from changemanager.masking import is_secret_name
from hms_bridge.errors import ConfigError

SUBMIT_ARGUMENTS = "PYSPARK_SUBMIT_ARGS"
ANSI = "spark.sql.ansi.enabled"
LOCAL_MASTER = "local[*]"
_MASTER = "spark.master"
_PROGRESS = "spark.ui.showConsoleProgress"
_LOCAL = re.compile(r"local(\[.*\])?")
_KEY = re.compile(r"spark\.[\w.\-]+")
_PROPERTY = re.compile(r"\s*([^\s=:#!][^\s=:]*)\s*[=:\s]\s*(.*?)\s*")


@dataclass(frozen=True, kw_only=True, slots=True)
class SparkRequest:
    """What a person or program asked for. ``master`` None: whatever the surroundings say."""

    master: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict)


def spark_request(
    master: str | None, properties: Path | None, assignments: Sequence[str]
) -> SparkRequest:
    """From the options of a command line. Raises ConfigError for what is no setting of Spark."""
    settings = read_properties(properties) if properties else {}
    settings |= dict(_assignment(text) for text in assignments)
    if settings.get(ANSI, "true").strip().lower() != "true":
        raise ConfigError(
            f"{ANSI} must be true: without it a value that does not fit its column is written as "
            "NULL; leave the setting out"
        )
    chosen = master or settings.pop(_MASTER, None)
    settings.pop(_MASTER, None)
    return SparkRequest(master=chosen, settings=settings)


def read_properties(path: Path) -> dict[str, str]:
    """A file of ``key=value`` or ``key value`` lines, as spark-defaults.conf is one.

    Raises ConfigError with the line that is none.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"--spark-properties: cannot read {path}: {error}") from error
    properties = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.lstrip().startswith(("#", "!")):
            continue
        match = _PROPERTY.fullmatch(line)
        if match is None or not _KEY.fullmatch(match[1]):
            raise ConfigError(f"{path}, line {number}: '{line.strip()}' is no setting of Spark")
        properties[match[1]] = match[2]
    return properties


def _assignment(text: str) -> tuple[str, str]:
    key, separator, value = text.partition("=")
    if not separator or not _KEY.fullmatch(key.strip()):
        raise ConfigError(f"--spark takes spark.KEY=VALUE, not '{text}'")
    return key.strip(), value.strip()


def is_local(master: str) -> bool:
    """Whether the executors of this master are in the driver's own process."""
    return _LOCAL.fullmatch(master) is not None


def submit_arguments(request: SparkRequest, environment: Mapping[str, str], home: Path) -> str:
    """PYSPARK_SUBMIT_ARGS: ours before what stands there already, the request behind it.

    Ours are what the launcher would choose itself where nobody says anything. Secrets of the
    request are for the session alone: everybody on the machine sees the launcher's command line.
    """
    words = shlex.split(environment.get(SUBMIT_ARGUMENTS) or "pyspark-shell")
    settings = _effective_options(words, environment, home)
    ours = ["--master", expected_master(request, environment, home)]
    if _PROGRESS not in settings:
        ours += ["--conf", f"{_PROGRESS}=false"]
    own = [
        word
        for key, value in request.settings.items()
        if not is_secret_name(key)
        for word in ("--conf", f"{key}={value}")
    ]
    if request.master:
        own = ["--master", request.master, *own]
    return shlex.join([*ours, *words[:-1], *own, words[-1]])


def expected_master(request: SparkRequest, environment: Mapping[str, str], home: Path) -> str:
    """The master that Spark is to have, before it runs. ``home`` is Spark's own folder."""
    words = shlex.split(environment.get(SUBMIT_ARGUMENTS, ""))
    options = _options(words)
    return (
        request.master
        or options.get("--master")
        or options.get(_MASTER)
        or environment.get("SPARK_MASTER")
        or _effective_options(words, environment, home).get(_MASTER)
        or LOCAL_MASTER
    )


def _effective_options(
    words: Sequence[str], environment: Mapping[str, str], home: Path
) -> Mapping[str, str]:
    """As :func:`_options`, over those of Spark's own file of defaults."""
    options = _options(words)
    return {**_spark_defaults(environment, home, options.get("--properties-file")), **options}


def _options(words: Sequence[str]) -> dict[str, str]:
    """Of a command line: options by name, and settings of ``--conf`` by key."""
    options: dict[str, str] = {}
    for word, after in zip(words, [*words, ""][1:], strict=True):
        name, separator, value = word.partition("=")
        text = value if separator else after
        if name in ("--conf", "-c"):
            key, _, setting = text.partition("=")
            options[key] = setting
        elif name in ("--master", "--properties-file"):
            options[name] = text
    return options


def _spark_defaults(
    environment: Mapping[str, str], home: Path, properties: str | None
) -> Mapping[str, str]:
    folder = conf_folder(environment, home)
    path = Path(properties) if properties else folder / "spark-defaults.conf"
    if not path.is_file():
        return {}
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    matches = (_PROPERTY.fullmatch(line) for line in lines)
    return {match[1]: match[2] for match in matches if match}


def conf_folder(environment: Mapping[str, str], home: Path) -> Path:
    """Where Spark reads spark-defaults.conf and log4j2.properties."""
    given = environment.get("SPARK_CONF_DIR")
    return Path(given) if given else home / "conf"
