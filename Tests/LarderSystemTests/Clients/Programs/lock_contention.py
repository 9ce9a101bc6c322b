"""Many processes contend for one lock of redis-py, and holders are killed.

Arguments: the socket, the number of processes, the number of rounds, a seed.

- order: each process takes the lock several times, and increments a number in a file: it reads the number, and writes it
  later. In addition, it takes a file lock of the kernel without waiting, which must always be free for the holder of the
  server's lock.
- kills, with a quarter of the processes: processes that hold the lock or wait for it are killed at random moments. Then
  the lock must become free when its timeout has passed, and not earlier. In the end, no lock is left. A holder writes to
  a file until when it has the lock at least: the timeout after its request. A process that was suspended for longer has
  lost its lock, which is not an error. A process that gets the lock before that time of another holder is an error.
"""

import fcntl
import multiprocessing
import os
import random
import signal
import sys
import tempfile
import time

import redis
from expecting import all_is_well, expect
from redis.exceptions import LockNotOwnedError

path, count, rounds, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
fork = multiprocessing.get_context("fork")
random.seed(seed)
# LONG: longer than any holder needs, even on a busy machine. SHORT: so short that the others can wait for the timeout.
LONG, SHORT = 100, 0.4
# The server's deadlines are whole milliseconds of the wall clock, which differs from the monotonic clock used here.
UNSHARP = 0.005


class Record:
    """Two numbers in a file."""

    def __init__(self, name):
        self._file = os.open(name, os.O_RDWR | os.O_CREAT, 0o600)

    def lock(self, more=0):
        fcntl.lockf(self._file, fcntl.LOCK_EX | more)

    def unlock(self):
        fcntl.lockf(self._file, fcntl.LOCK_UN)

    def read(self):
        """Returns the holder's number, and the time until which it has the lock."""
        words = os.pread(self._file, 100, 0).split()
        return (int(words[0]), float(words[1])) if words else (0, 0.0)

    def write(self, number, until):
        os.pwrite(self._file, b"%20d %30.9f" % (number, until), 0)


def order(number, name):
    client, record, chance = redis.Redis(unix_socket_path=path), Record(name), random.Random(seed + number)
    for _ in range(rounds):
        with client.lock("order", timeout=LONG, sleep=0.005 + chance.random() * 0.05):
            record.lock(fcntl.LOCK_NB)
            before, _ = record.read()
            time.sleep(chance.random() * 0.001)
            record.write(before + 1, 0)
            record.unlock()


class Client(redis.Redis):
    """Records the time of the last request."""

    def execute_command(self, *words, **options):
        self.asked = time.monotonic()
        return super().execute_command(*words, **options)


def work(number, name, reader, pipe):
    """Takes the lock repeatedly until the process is killed, and reports each success."""
    # Close this copy, so that writing fails when the reader has ended.
    os.close(reader)
    client, record, chance = Client(unix_socket_path=path), Record(name), random.Random(seed + number)
    while True:
        lock = client.lock("kills", timeout=SHORT, sleep=0.005 + chance.random() * 0.05)
        lock.acquire()
        until, now = client.asked + SHORT - UNSHARP, time.monotonic()
        record.lock()
        other, theirs = record.read()
        # If this holder's time is over, the record may already belong to the next holder.
        if time.monotonic() < until:
            if now < theirs:
                early = theirs - now
                os.write(pipe, b"fault %d got the lock %f s before %d's was over\n" % (number, early, other))
            record.write(number, until)
        record.unlock()
        os.write(pipe, b"%d\n" % os.getpid())
        time.sleep(chance.random() * 0.004)
        # Until the time is over, no other process writes the record. From here on, a killed process counts as having
        # released the lock.
        record.lock()
        if record.read()[0] == number:
            record.write(number, 0)
        record.unlock()
        try:
            lock.release()
        except LockNotOwnedError:
            if (left := until - time.monotonic()) > 0:
                os.write(pipe, b"fault %d lost the lock %f s before it was over\n" % (number, left))


def start(target, *arguments):
    process = fork.Process(target=target, args=arguments, daemon=True)
    process.start()
    return process


def kills(name):
    """Kills the holder and another process in each round."""
    client = redis.Redis(unix_socket_path=path)
    reader, writer = os.pipe()
    lines = os.fdopen(reader)
    workers, numbers, turns = {}, iter(range(1, 1_000_000)), 0

    def more():
        process = start(work, next(numbers), name, reader, writer)
        workers[process.pid] = process

    for _ in range(count // 4):
        more()
    for _ in range(rounds):
        for _ in range(random.randrange(1, 20)):
            line = lines.readline()
            if line.startswith("fault"):
                raise AssertionError(line)
            turns += 1
        holder = workers.get(int(line)) or random.choice(list(workers.values()))
        time.sleep(random.random() * 0.006)
        for victim in {holder, random.choice(list(workers.values()))}:
            os.kill(victim.pid, signal.SIGKILL)
            victim.join()
            expect(victim.exitcode, -signal.SIGKILL)
            del workers[victim.pid]
            more()
        left = client.pttl("kills")
        if left == -1 or left > SHORT * 1000:
            raise AssertionError(f"a lock of {SHORT} s has {left} ms")
    for process in workers.values():
        os.kill(process.pid, signal.SIGKILL)
    for process in workers.values():
        process.join()
        expect(process.exitcode, -signal.SIGKILL)
    os.close(writer)
    rest = lines.read()
    expect([line for line in rest.splitlines() if line.startswith("fault")], [])
    # No process is left that could release the lock: it ends with its timeout, and can be taken then.
    with client.lock("kills", timeout=LONG, sleep=0.002) as lock:
        expect(client.get("kills"), lock.local.token)
    expect(client.exists("kills"), 0)
    print(f"kills: {rounds} rounds, {next(numbers) - 1} processes, {turns} turns and more")


with tempfile.TemporaryDirectory() as directory:
    began = time.monotonic()
    processes = [start(order, number, directory + "/order") for number in range(count)]
    for process in processes:
        process.join()
        expect(process.exitcode, 0)
    expect(Record(directory + "/order").read()[0], count * rounds)
    expect(redis.Redis(unix_socket_path=path).exists("order"), 0)
    print(f"order: {count} processes, {rounds} rounds, {time.monotonic() - began:.1f} s")
    kills(directory + "/kills")
all_is_well()
