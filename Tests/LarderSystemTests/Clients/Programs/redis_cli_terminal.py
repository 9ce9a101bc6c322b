"""redis-cli at a terminal: prompt, hints while typing, completion, help. Argument: the socket.

Hints and help come from COMMAND DOCS, which redis-cli requests when it starts.
"""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import termios

from expecting import all_is_well

path = sys.argv[1]
# How long to wait for the output of redis-cli, in seconds. Not reached in a successful run.
PATIENCE = 60
pid, terminal = pty.fork()
if pid == 0:
    # Set the terminal's size: otherwise redis-cli would ask the terminal for it, and read the typed text as the reply.
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 600, 0, 0))
    os.environ.update({"TERM": "xterm", "HOME": "/nonexistent", "REDISCLI_HISTFILE": "/dev/null"})
    os.execvp("redis-cli", ["redis-cli", "-s", path])

shown = b""


def wait_for(pattern):
    """Reads until the output since the last call matches a pattern, and returns the match."""
    global shown
    while not (match := re.search(pattern, shown, re.DOTALL)):
        ready, _, _ = select.select([terminal], [], [], PATIENCE)
        if not ready:
            raise AssertionError(f"redis-cli does not show {pattern!r}; it shows {shown!r}")
        try:
            shown += os.read(terminal, 65536)
        except OSError as error:
            raise AssertionError(f"redis-cli ended without {pattern!r}; it showed {shown!r}") from error
    shown = shown[match.end():]
    return match


def type_keys(text):
    os.write(terminal, text)


prompt = re.escape(path.encode()) + rb"> "
wait_for(prompt)
type_keys(b"GET ")
wait_for(rb"GET .*key")
type_keys(b"nothing\r")
wait_for(rb"\(nil\)")
wait_for(prompt)
type_keys(b"SET greeting ")
# The hint shows the remaining arguments.
wait_for(rb"SET greeting .*value .*EX seconds.*KEEPTTL")
type_keys(b"\"hello world\"\r")
wait_for(rb"\nOK")
wait_for(prompt)
type_keys(b"getr\t")
wait_for(rb"GETRANGE|getrange")
type_keys(b" greeting 0 4\r")
wait_for(rb"\"hello\"")
wait_for(prompt)
type_keys(b"strlen greeting\r")
wait_for(rb"\(integer\) 11")
wait_for(prompt)
type_keys(b"help getrange\r")
wait_for(rb"GETRANGE.*key start end.*summary:.*since:.*2\.4\.0.*group:.*string")
wait_for(prompt)
type_keys(b"nosuch x\r")
wait_for(rb"\(error\) ERR unknown command 'nosuch', with args beginning with: 'x'")
wait_for(prompt)
type_keys(b"select 1\r")
wait_for(rb"OK")
wait_for(re.escape(path.encode()) + rb"\[1\]> ")
type_keys(b"multi\r")
wait_for(re.escape(path.encode()) + rb"\[1\]\(TX\)> ")
type_keys(b"set k v\r")
wait_for(rb"QUEUED")
wait_for(re.escape(path.encode()) + rb"\[1\]\(TX\)> ")
type_keys(b"exec\r")
wait_for(rb"1\) OK")
wait_for(re.escape(path.encode()) + rb"\[1\]> ")
type_keys(b"subscribe news\r")
wait_for(rb"1\) \"subscribe\".*2\) \"news\".*3\) \(integer\) 1")
os.kill(pid, signal.SIGKILL)
os.waitpid(pid, 0)
all_is_well()
