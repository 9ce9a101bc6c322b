#!/usr/bin/env python3
"""A client of larderd that uses only Python's socket module.

As a module:

    with Larder("larder.sock", database="installed") as larder:
        record = json.loads(larder.command("GET", "bash:amd64"))

As a program: larder.py SOCKET COMMAND [ARGUMENT ...]
Exit codes: 0 success, 1 the reply is an error or null, 2 wrong usage, 3 no daemon.
"""

import socket
import sys


class LarderError(Exception):
    """An error reply of the daemon."""


class Larder:
    """One connection. Used by one thread at a time."""

    def __init__(self, path, database=None, timeout=10.0):
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(timeout)
        try:
            self._socket.connect(path)
        except OSError:
            self._socket.close()
            raise
        self._reader = self._socket.makefile("rb")
        self.command("HELLO", 3)
        if database is not None:
            self.command("SELECT", database)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self._reader.close()
        self._socket.close()

    def command(self, *words):
        """Sends one command and returns its reply; raises LarderError for an error reply."""
        (reply,) = self.pipeline([words])
        if isinstance(reply, LarderError):
            raise reply
        return reply

    def pipeline(self, commands):
        """Sends many commands at once and returns their replies, in order. Error replies are returned, not raised."""
        self.send(commands)
        return [self.receive() for _ in commands]

    def send(self, commands):
        """Sends commands. Call receive() once for each; unread replies must fit into the socket's buffers."""
        self._socket.sendall(b"".join(map(encode, commands)))

    def receive(self):
        """Receives the next reply. An error reply is returned, not raised."""
        line = self._reader.readline()
        if not line.endswith(b"\r\n"):
            raise ConnectionError("the daemon closed the connection")
        kind, rest = line[:1], line[1:-2]
        if kind == b"+":
            return rest.decode()
        if kind == b"-":
            return LarderError(rest.decode())
        if kind == b":":
            return int(rest)
        if kind == b"_":
            return None
        if kind == b"#":
            return rest == b"t"
        if kind == b",":
            return float(rest)
        if kind in b"$=":
            return self._read_text(int(rest))
        if kind in b"*~>":
            return [self.receive() for _ in range(int(rest))]
        if kind == b"%":
            return {self._key(): self.receive() for _ in range(int(rest))}
        raise ConnectionError(f"an answer that was not understood: {line!r}")

    def _key(self):
        key = self.receive()
        return key.decode() if isinstance(key, bytes) else key

    def _read_text(self, length):
        text = self._reader.read(length + 2)
        if len(text) != length + 2:
            raise ConnectionError("the daemon closed the connection")
        return text[:-2]


def encode(words):
    """Encodes a command: the number of its words, then each word with its length in bytes."""
    words = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    parts = [b"*%d\r\n" % len(words)]
    parts += [b"$%d\r\n%s\r\n" % (len(word), word) for word in words]
    return b"".join(parts)


def show(reply, indent=""):
    """Prints a reply in a readable form."""
    if isinstance(reply, dict):
        for key, value in reply.items():
            print(f"{indent}{key}: {text(value)}")
    elif isinstance(reply, list):
        for value in reply:
            show(value, indent)
    else:
        print(indent + text(reply))


def text(value):
    return value.decode(errors="backslashreplace") if isinstance(value, bytes) else str(value)


def main(arguments):
    if len(arguments) < 2:
        print("usage: larder.py SOCKET COMMAND [ARGUMENT ...]", file=sys.stderr)
        return 2
    try:
        with Larder(arguments[0]) as larder:
            reply = larder.command(*arguments[1:])
    except LarderError as error:
        print(error, file=sys.stderr)
        return 1
    except OSError as error:
        print(f"{arguments[0]}: {error}", file=sys.stderr)
        return 3
    if reply is None:
        return 1
    show(reply)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
