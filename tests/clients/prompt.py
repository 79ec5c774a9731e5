"""Types at a program in a terminal of its own: `prompt.py COLUMNS PROGRAM ARGUMENT...`, steps as JSON on stdin.

A step is ["expect", text], which waits until the program has shown that since the last step that expected something, or
["type", text]. In the end the program has to end by itself.

Prints what was shown, without colours and the like, step by step of those that expect, and the exit code.
"""

import fcntl
import json
import os
import pty
import re
import select
import struct
import sys
import termios
import time

PATIENCE = 60
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Terminal:
    def __init__(self, columns, command):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            # The size is there before the program looks.
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
            os.execvp(command[0], command)
        self.seen = b""
        # How much of what was shown was expected already.
        self.place = 0
        self.has_ended = False

    def read(self, seconds):
        if not select.select([self.fd], [], [], seconds)[0]:
            return
        try:
            more = os.read(self.fd, 65536)
        except OSError:
            more = b""
        self.has_ended |= not more
        self.seen += more

    def shown(self):
        """What was shown since, without an escape sequence that has only begun."""
        whole = ESCAPES.sub("", self.seen.decode("utf-8", "replace")).split("\x1b")[0]
        return whole.replace("\r\n", "\n")[self.place :]

    def expect(self, text):
        until = time.monotonic() + PATIENCE
        while text not in self.shown():
            if self.has_ended or time.monotonic() > until:
                sys.exit(f"'{text}' was not shown, but: {self.shown()!r}")
            self.read(0.1)
        shown = self.shown()
        shown = shown[: shown.index(text) + len(text)]
        # A line that ends here is also where the next thing that is expected may begin.
        self.place += len(shown.rstrip("\r\n"))
        return shown

    def end(self):
        until = time.monotonic() + PATIENCE
        while not self.has_ended:
            if time.monotonic() > until:
                sys.exit(f"it does not end, and shows: {self.shown()!r}")
            self.read(0.1)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def main(columns, *command):
    terminal = Terminal(int(columns), command)
    shown = []
    for step, text in json.load(sys.stdin):
        if step == "expect":
            shown.append(terminal.expect(text))
        else:
            os.write(terminal.fd, text.encode())
    code = terminal.end()
    print(json.dumps({"shown": shown, "rest": terminal.shown(), "code": code}))


main(*sys.argv[1:])
