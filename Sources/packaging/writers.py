"""Writes to a larderd for some seconds, also while it is restarted, and checks the acknowledged writes.

Usage: writers.py SOCKET SECONDS. Each of four writers increments a number under its own key, and also fills the larder with
incompressible values of 50 KB. Prints one line: the operations, refused connections, and the longest wait. Exits with 1 if
an acknowledged number was missing later or a connection was refused.
"""
import os
import socket
import sys
import threading
import time

path, seconds = sys.argv[1], float(sys.argv[2])
until = time.monotonic() + seconds
lock = threading.Lock()
totals = {"writes": 0, "refused": 0, "lost": 0, "connections": 0, "errors": set()}
waits = [0.0]


def command(*words):
    words = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)


class Connection:
    def __init__(self):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(60)
        self.socket.connect(path)
        self.file = self.socket.makefile("rb")

    def ask(self, *words):
        self.socket.sendall(command(*words))
        line = self.file.readline()
        if not line:
            raise ConnectionResetError
        if line[:1] == b"$" and line != b"$-1\r\n":
            return self.file.read(int(line[1:]) + 2)[:-2]
        return line[:-2]


def connected():
    try:
        connection = Connection()
    except (ConnectionRefusedError, FileNotFoundError):
        with lock:
            totals["refused"] += 1
        time.sleep(0.05)
        return None
    with lock:
        totals["connections"] += 1
    return connection


def write(number):
    acknowledged, connection, writes = 0, None, 0
    while time.monotonic() < until:
        began = time.monotonic()
        try:
            connection = connection or connected()
            if connection is None:
                continue
            # A new connection sees the writes acknowledged on the previous one.
            found = connection.ask("GET", f"counter {number}")
            if found != b"$-1" and not found.startswith(b"-") and int(found) < acknowledged:
                with lock:
                    totals["lost"] += 1
            for _ in range(50):
                reply = connection.ask("SET", f"counter {number}", acknowledged + 1)
                if reply == b"+OK":
                    acknowledged += 1
                reply = connection.ask("SET", f"fill {number} {writes}", os.urandom(50_000))
                if reply != b"+OK":
                    with lock:
                        totals["errors"].add(reply.decode(errors="replace")[:100])
                writes += 1
        except (ConnectionError, BrokenPipeError, socket.timeout) as error:
            if isinstance(error, socket.timeout):
                with lock:
                    totals["errors"].add("no answer for a minute")
            connection = None
        with lock:
            waits[0] = max(waits[0], time.monotonic() - began)
    with lock:
        totals["writes"] += writes


threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(
    f"{totals['writes']} values of 50 KB, {totals['connections']} connections, {totals['refused']} refused, "
    f"{totals['lost']} acknowledged writes lost, longest round of 100 writes {waits[0]:.2f} s, errors: {sorted(totals['errors'])}"
)
sys.exit(1 if totals["refused"] or totals["lost"] or totals["errors"] else 0)
