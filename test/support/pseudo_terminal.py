"""Runs a command in a pseudo-terminal: python3 pseudo_terminal.py COLUMNS ROWS COMMAND...

Standard input is lines of JSON: {"send": text}, {"resize": [columns, rows]}. What the command writes to
its terminal comes on standard output, byte for byte. The exit code is the command's.
"""

import fcntl
import json
import os
import pty
import select
import signal
import struct
import sys
import termios


def resize(terminal, columns, rows):
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def obey(line, terminal, child):
    order = json.loads(line)
    if "send" in order:
        os.write(terminal, order["send"].encode())
    if "resize" in order:
        resize(terminal, *order["resize"])
        os.kill(child, signal.SIGWINCH)


def relay(terminal, child):
    pending = b""
    sources = [terminal, 0]
    while True:
        for source in select.select(sources, [], [])[0]:
            try:
                data = os.read(source, 65536)
            except OSError:
                data = b""
            if source == terminal:
                if not data:
                    return
                os.write(1, data)
            elif not data:
                sources.remove(0)
                os.kill(child, signal.SIGHUP)
            else:
                *lines, pending = (pending + data).split(b"\n")
                for line in lines:
                    obey(line, terminal, child)


def main():
    columns, rows, *command = sys.argv[1:]
    child, terminal = pty.fork()
    if child == 0:
        os.execvp(command[0], command)
    resize(terminal, int(columns), int(rows))
    relay(terminal, child)
    _, status = os.waitpid(child, 0)
    sys.exit(os.waitstatus_to_exitcode(status))


main()
