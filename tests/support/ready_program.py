"""The program `hms-bridge` for shells that type dozens of it, without its start each time.

A process loads the program once, and each `hms-bridge` of a shell is a fork of it: a process of its
own in the shell's folder, with its words, environment and streams. That the program starts by
itself, other tests prove (`tests/cli/test_help.py`, and whoever uses `Program.start`).
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.program import process_environment

_TYPED = """\
#!{python} -IS
import os, socket, sys
words = [os.getcwd(), *sys.argv[1:], "", *(f"{{k}}={{v}}" for k, v in os.environ.items())]
with socket.socket(socket.AF_UNIX) as loaded:
    loaded.connect({address!r})
    text = b"\\0".join(map(os.fsencode, words))
    socket.send_fds(loaded, [len(text).to_bytes(4, "big")], [0, 1, 2])
    loaded.sendall(text)
    sys.exit(loaded.recv(1)[0])
"""
_LOADED = """\
import gc, importlib, os, pkgutil, runpy, signal, socket, sys
import hms_bridge.cli.main
for room in ("hms_bridge.cli", "hms_bridge.service", "hms_bridge.repl"):
    for module in pkgutil.iter_modules(importlib.import_module(room).__path__, room + "."):
        importlib.import_module(module.name)
del sys.modules["hms_bridge.cli.main"]  # which is run anew as the program

def run(texts, streams):
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    end = texts.index("")
    os.chdir(texts[0])
    os.environ.clear()
    os.environ.update(text.split("=", 1) for text in texts[end + 1 :])
    sys.argv = ["hms-bridge", *texts[1:end]]
    runpy.run_module("hms_bridge.cli.main", run_name="__main__", alter_sys=True)

door = socket.socket(socket.AF_UNIX)
door.bind(sys.argv[1])
door.listen(8)
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
gc.freeze()  # what is loaded stays, and need not be copied to be looked through
print("loaded", flush=True)
while True:
    shell, _ = door.accept()
    if os.fork():
        shell.close()
        continue
    door.close()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    head, streams, _, _ = socket.recv_fds(shell, 4, 3)
    text = b""
    while len(text) < int.from_bytes(head, "big"):
        text += shell.recv(1 << 16)
    program = os.fork()
    if program == 0:
        shell.close()
        run([os.fsdecode(one) for one in text.split(b"\\0")], streams)
        sys.exit()
    code = os.waitstatus_to_exitcode(os.waitpid(program, 0)[1])
    shell.sendall(bytes([code % 256]))
    os._exit(0)
"""


@contextmanager
def ready_program(path: Path) -> Iterator[None]:
    """Make `path` the program, for the length of a block."""
    address = path.with_suffix(".socket")
    with subprocess.Popen(
        [sys.executable, "-c", _LOADED, str(address)], env=process_environment(),
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
    ) as loaded:  # fmt: skip
        try:
            assert loaded.stdout is not None
            assert loaded.stdout.readline() == "loaded\n"
            path.write_text(
                _TYPED.format(python=os.path.realpath(sys.executable), address=str(address))
            )
            path.chmod(0o755)
            yield
        finally:
            loaded.kill()
