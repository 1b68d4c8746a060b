"""A place where other people's networks run: they kill processes and delete interfaces by their names.

A sandbox has process numbers, interfaces, `/sys`, `/run` and `/tmp` of its own, and cannot change how the kernel uses
memory; when it ends, nothing of it is left. It needs root.
"""

from __future__ import annotations

import os
import select
import shutil
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

ENDING_WITH_US = ("setpriv", "--pdeathsig", "KILL", "--")
"""A sandbox ends when the thread that made it does, however that ends."""
NAMESPACES = ("unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")
PROJECT = Path(__file__).resolve().parents[2]
SET_UP = """mount -t sysfs sysfs /sys
mount --bind /proc/sys/vm /proc/sys/vm
mount -o remount,bind,ro /proc/sys/vm
mount -t tmpfs tmpfs /run
mkdir /run/project
mount --bind "$0" /run/project
mount -t tmpfs tmpfs /tmp
mkdir -p "$0"
mount --bind /run/project "$0"
ip link set lo up
exec "$@"
"""
"""What the shell of a sandbox does first. The project, `$0`, stays where it is, even if that is in /tmp."""
TICK_S = 0.1
PROMPT = "mininet> "

P4C = """#!{python}
import pathlib, subprocess, sys
rest, given, output, source = [], sys.argv[1:], ".", None
while given:
    word = given.pop(0)
    if word in ("--target", "--arch", "-b", "-a"):
        given.pop(0)
    elif word == "-o":
        output = given.pop(0)
    elif word.endswith(".p4"):
        source = word
    else:
        rest.append(word)
result = pathlib.Path(output, pathlib.Path(source).stem + ".json")
sys.exit(subprocess.call(["p4c-bm2-ss", *rest, "-o", str(result), source]))
"""
"""The driver `p4c`, for machines that have only the compiler for BMv2."""

COMPILER = """#!{python}
import subprocess, sys
words = sys.argv[1:]
for place, word in enumerate(words[:-1]):
    if word == "--p4runtime-files" and words[place + 1].endswith(".txtpb"):
        words[place] = "--p4runtime-file"
        words += ["--p4runtime-format", "text"]
sys.exit(subprocess.call([{compiler!r}, *words]))
"""
"""The compiler for BMv2, where it is older than the suffix .txtpb."""

IN_HOST = r"""#!/bin/sh
host=$1; shift
exec mnexec -a $(pgrep -f "mininet:$host\$" | head -1) "$@"
"""
"""p4-utils' `mx HOST COMMAND...`: a command in a host of the network."""

STRATUM = """#!{python}
import os, re, sys
given = dict(word.lstrip("-").split("=", 1) for word in sys.argv[1:])
chassis = open(given["chassis_config_file"]).read()
ports = re.findall(r'singleton_ports \\{{\\s*id: (\\d+)\\s*name: "(.*?)"', chassis)
port = int(given["external_stratum_urls"].rpartition(":")[2])
switch = ["simple_switch_grpc", "--no-p4", "--device-id", given["device_id"]]
switch += ["--thrift-port", str(port - 40000), "--notifications-addr", f"ipc:///tmp/{{port}}.ipc"]
for number, interface in ports:
    switch += ["-i", number + "@" + interface]
switch += ["--", "--cpu-port", given["cpu_port"], "--grpc-server-addr", given["external_stratum_urls"]]
files = dict(cacert="ca_cert_file", cert="server_cert_file", key="server_key_file")
if "server_cert_file" in given:
    switch += ["--grpc-server-ssl", "--grpc-server-with-client-auth"]
    for option, name in files.items():
        switch += ["--grpc-server-" + option, given[name]]
os.execvp(switch[0], switch)
"""
"""`stratum_bmv2` with the P4Runtime of simple_switch_grpc in place of Stratum's, and nothing of gNMI."""

PASS_ON = '#!/bin/sh\nexec env "$@"\n'
"""`sudo` where everything is root's already."""

AWAIT = """#!/bin/sh
for tick in $(seq 900); do grep -q -e "$2" "$1" 2> /dev/null && exit; sleep 0.1; done
echo "$1 does not say: $2"
"""
"""`await FILE TEXT`: go on when a file says something, or after 90 s that are counted in ticks."""

SETTLE = """#!/bin/sh
still=0
for tick in $(seq 300); do
    size=$(cat "$@" 2> /dev/null | wc -c)
    [ "$size" = "$before" ] && still=$((still + 1)) || still=0
    before=$size
    [ $still -lt 10 ] || exit 0
    sleep 0.2
done
"""
"""`settle FILE...`: go on when files have not grown for 2 s, or after 60 s."""

SNIFFED = """#!/bin/sh
for tick in $(seq 900); do ss -0 -n | grep -q ":$1 " && exit; sleep 0.1; done
echo "nobody sniffs on $1"
"""
"""`sniffed INTERFACE`: go on when a packet socket is bound to an interface, or after 90 s."""


def sandboxed(command: Sequence[str]) -> list[str]:
    """The command that runs another one in a sandbox."""
    return [*ENDING_WITH_US, *NAMESPACES, "sh", "-ec", SET_UP, str(PROJECT), *command]


def make_tools(folder: Path) -> Path:
    """Put the commands that scripts of others expect into `folder`, with those that lists use, and return it."""
    folder.mkdir(parents=True, exist_ok=True)
    compiler = COMPILER.format(python=sys.executable, compiler=shutil.which("p4c-bm2-ss"))
    driver, stratum = (text.format(python=sys.executable) for text in (P4C, STRATUM))
    tools = {"p4c": driver, "p4c-bm2-ss": compiler, "stratum_bmv2": stratum, "sudo": PASS_ON, "mx": IN_HOST}
    for name, text in {**tools, "await": AWAIT, "settle": SETTLE, "sniffed": SNIFFED}.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    return folder


class NoAnswerError(Exception):
    """A console that ended, or that has not answered for long."""


class StoppedError(Exception):
    """All sandboxes are to end."""


STOPPED = threading.Event()
"""Once it is set, nobody waits for a console any more."""


class Console:
    """The command line of a Mininet network that runs in a sandbox, in `folder`. `close` ends it.

    Time is counted in ticks during which this process runs, so that a machine that stands still breaks nothing.
    """

    def __init__(self, command: Sequence[str], folder: Path, path: Sequence[Path], more: Mapping[str, str]) -> None:
        places = [*map(str, path), os.environ["PATH"]]
        environment = {**os.environ, "PATH": os.pathsep.join(places), "PYTHONUNBUFFERED": "1", "TERM": "dumb", **more}
        environment.pop("PYTHONPATH", None)
        self.process = subprocess.Popen(
            sandboxed(command),
            cwd=folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def run(self, line: str, patience_s: float) -> str:
        """What the network's command line says to `line`."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(f"{line}\n".encode())
            self.process.stdin.flush()
        except BrokenPipeError as error:
            raise NoAnswerError("the network has ended") from error
        return self.read(patience_s)

    def read(self, patience_s: float, until: str = PROMPT) -> str:
        """What is said until the next prompt; `NoAnswerError` with all that was said, if none comes."""
        assert self.process.stdout is not None
        said = b""
        for _ in range(round(patience_s / TICK_S)):
            if STOPPED.is_set():
                raise StoppedError
            if not select.select([self.process.stdout], [], [], TICK_S)[0]:
                continue
            more = os.read(self.process.stdout.fileno(), 65536)
            said += more
            if until.encode() in said:
                return said.decode(errors="replace").replace(until, "")
            if not more:
                break
        raise NoAnswerError(said.decode(errors="replace"))

    def close(self) -> None:
        """End the sandbox, and all processes in it."""
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            try:
                pipe.close()
            except BrokenPipeError:
                continue
