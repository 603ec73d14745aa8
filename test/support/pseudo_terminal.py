"""Runs a command in a pseudo-terminal: python3 pseudo_terminal.py COLUMNS ROWS COMMAND...

Standard input is lines of JSON: {"send": text}, {"resize": [columns, rows]}, {"close": true}. What the command
writes to its terminal comes on standard output, byte for byte. The exit code is the command's, as a shell has it.
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
    """True: the terminal is closed, as a person closes a window."""
    order = json.loads(line)
    if "send" in order:
        os.write(terminal, order["send"].encode())
    if "resize" in order:
        resize(terminal, *order["resize"])
        os.kill(child, signal.SIGWINCH)
    return "close" in order


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
                if any([obey(line, terminal, child) for line in lines]):
                    os.close(terminal)
                    return


def main():
    columns, rows, *command = sys.argv[1:]
    child, terminal = pty.fork()
    if child == 0:
        os.execvp(command[0], command)
    resize(terminal, int(columns), int(rows))
    relay(terminal, child)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    sys.exit(code if code >= 0 else 128 - code)


main()
