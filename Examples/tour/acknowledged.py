#!/usr/bin/env python3
"""Writes until the daemon is killed, records which writes it acknowledged, and checks later that they are stored.

usage: acknowledged.py write SOCKET REPORT ROUND    prints `writing` after the first replies, exits if the daemon is killed
       acknowledged.py check SOCKET REPORT...

Four connections store single entries; a fifth stores batches of 200 entries, each of which overwrites the previous one.
Exit codes: 0 success, 1 an acknowledged write is missing or a batch was stored only in part, 2 wrong usage.
"""

import json
import os
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "clients", "python"))

from larder import Larder, LarderError  # noqa: E402

DATABASE = "work"
WRITERS = 4
PIPELINE = 50
BATCH = 200


def name(round_, writer, number):
    return f"{round_}:{writer}:{number}"


def value(round_, writer, number):
    return f"written by {writer} in round {round_} as number {number}".encode()


class Counts:
    """The number of acknowledged writes. Each element is written by one thread."""

    def __init__(self):
        self.singles = [0] * WRITERS
        self.batches = 0
        self.refusals = []


def write_singles(path, round_, writer, counts):
    try:
        with Larder(path, DATABASE) as larder:
            while True:
                first = counts.singles[writer]
                numbers = range(first, first + PIPELINE)
                larder.send(("SET", name(round_, writer, n), value(round_, writer, n)) for n in numbers)
                for _ in numbers:
                    reply = larder.receive()
                    if reply != "OK":
                        counts.refusals.append(str(reply))
                        return
                    counts.singles[writer] += 1
    except OSError:
        pass  # The daemon is gone: what was acknowledged until then counts.


def write_batches(path, round_, counts):
    try:
        with Larder(path, DATABASE) as larder:
            while True:
                stamp = f"{round_}:{counts.batches + 1}"
                words = ["MSET"]
                for part in range(BATCH):
                    words += [f"batch:{part}", stamp]
                larder.command(*words)
                counts.batches += 1
    except LarderError as error:
        counts.refusals.append(str(error))
    except OSError:
        pass


def write(path, report, round_):
    counts = Counts()
    threads = [threading.Thread(target=write_singles, args=(path, round_, w, counts)) for w in range(WRITERS)]
    threads.append(threading.Thread(target=write_batches, args=(path, round_, counts)))
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        threads[0].join(0.02)
        if min(counts.singles) > 0 and counts.batches > 0:
            print("writing", flush=True)
            break
    for thread in threads:
        thread.join()
    with open(report, "w", encoding="utf-8") as file:
        json.dump({"round": round_, "singles": counts.singles, "batches": counts.batches}, file)
    for refusal in counts.refusals:
        print(f"refused: {refusal}")
    print(f"acknowledged: {sum(counts.singles):,} single writes, {counts.batches:,} batches of {BATCH} entries")
    return 1 if counts.refusals or not all(counts.singles) or not counts.batches else 0


def check(path, reports):
    wrong = 0
    with Larder(path, DATABASE) as larder:
        for report in reports:
            with open(report, encoding="utf-8") as file:
                last = json.load(file)
            missing = sum(count_missing(larder, last["round"], w, n) for w, n in enumerate(last["singles"]))
            acknowledged = sum(last["singles"])
            print(f"round {last['round']}: {acknowledged:,} acknowledged, {acknowledged - missing:,} of them found")
            wrong += missing
        # Later rounds overwrite the batches of earlier ones, so compare with the last report only.
        stamps = set(larder.command("MGET", *(f"batch:{part}" for part in range(BATCH))))
        shown = ", ".join("nothing" if stamp is None else stamp.decode() for stamp in stamps)
        allowed = {f"{last['round']}:{last['batches'] + more}".encode() for more in (0, 1)}
        print(f"batches: {last['round']}:{last['batches']} was acknowledged last, all {BATCH} entries are of {shown}")
        if len(stamps) != 1 or not stamps <= allowed:
            wrong += 1
    return 1 if wrong else 0


def count_missing(larder, round_, writer, acknowledged):
    missing = 0
    for first in range(0, acknowledged, 1000):
        numbers = range(first, min(first + 1000, acknowledged))
        replies = larder.pipeline([("GET", name(round_, writer, n)) for n in numbers])
        missing += sum(reply != value(round_, writer, n) for n, reply in zip(numbers, replies))
    return missing


def main(arguments):
    if len(arguments) == 4 and arguments[0] == "write":
        return write(*arguments[1:])
    if len(arguments) >= 3 and arguments[0] == "check":
        return check(arguments[1], arguments[2:])
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
