#!/usr/bin/env python3
"""Shows a snapshot over the socket: one connection reads from the snapshot while another connection writes.

usage: snapshot.py SOCKET
Exit codes: 0 the snapshot did not change, 1 it did, 2 wrong usage.
"""

import sys

from larder import Larder


def main(arguments):
    if len(arguments) != 1:
        print("usage: snapshot.py SOCKET", file=sys.stderr)
        return 2
    (path,) = arguments
    with Larder(path, database="prices") as reader, Larder(path, database="prices") as writer:
        writer.command("MSET", "bread", "3.20", "milk", "1.15")
        reader.command("SNAPSHOT", "OPEN")
        print("snapshot opened:   bread 3.20, milk 1.15")
        writer.command("MSET", "bread", "3.40", "milk", "1.25", "salt", "0.60")
        print("written after it:  bread 3.40, milk 1.25, salt 0.60")
        seen = reader.command("MGET", "bread", "milk", "salt")
        print(f"in the snapshot:   bread {shown(seen[0])}, milk {shown(seen[1])}, salt {shown(seen[2])}")
        reader.command("SNAPSHOT", "CLOSE")
        now = reader.command("MGET", "bread", "milk", "salt")
        print(f"after closing it:  bread {shown(now[0])}, milk {shown(now[1])}, salt {shown(now[2])}")
    return 0 if seen == [b"3.20", b"1.15", None] and now == [b"3.40", b"1.25", b"0.60"] else 1


def shown(value):
    return "nothing" if value is None else value.decode()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
