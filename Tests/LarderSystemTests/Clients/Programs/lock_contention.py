"""Many processes want one lock of redis-py, and holders die.

Arguments: the socket, how many processes, how many rounds, a seed.

- order: each process takes the lock some times, and adds to a number in a file: it reads, and writes later. A lock of
  the kernel's on the file, which nobody waits for, is always free for who has the server's.
- kills, with a quarter of the processes: those that hold the lock, or wait for it, are killed at random moments. It is
  free for others when its time is over, and no earlier, and none is left when all have ended. A holder says in a file
  until when the lock is its own at least: as long as it lasts, from when it was asked for. A process that was kept from
  running for longer has lost its lock, which is no fault; one that gets the lock while it is another's has found a
  fault.
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
# Longer than any holder needs, though the machine is busy; and so short that all can wait for the end of one's time.
LONG, SHORT = 100, 0.4
# Deadlines are milliseconds of the clock of the day, which is not the clock here.
UNSHARP = 0.005


class Record:
    """Numbers in a file."""

    def __init__(self, name):
        self._file = os.open(name, os.O_RDWR | os.O_CREAT, 0o600)

    def lock(self, more=0):
        fcntl.lockf(self._file, fcntl.LOCK_EX | more)

    def unlock(self):
        fcntl.lockf(self._file, fcntl.LOCK_UN)

    def read(self):
        """The holder's number, and until when it has the lock."""
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
    """Remembers when it asked last."""

    def execute_command(self, *words, **options):
        self.asked = time.monotonic()
        return super().execute_command(*words, **options)


def work(number, name, reader, pipe):
    """Takes the lock until it is killed, and tells who has it."""
    # So that it ends at its next turn when nobody reads any longer.
    os.close(reader)
    client, record, chance = Client(unix_socket_path=path), Record(name), random.Random(seed + number)
    while True:
        lock = client.lock("kills", timeout=SHORT, sleep=0.005 + chance.random() * 0.05)
        lock.acquire()
        until, now = client.asked + SHORT - UNSHARP, time.monotonic()
        record.lock()
        other, theirs = record.read()
        # Where this one's time is over by now, what it reads may be its heir's.
        if time.monotonic() < until:
            if now < theirs:
                early = theirs - now
                os.write(pipe, b"fault %d got the lock %f s before %d's was over\n" % (number, early, other))
            record.write(number, until)
        record.unlock()
        os.write(pipe, b"%d\n" % os.getpid())
        time.sleep(chance.random() * 0.004)
        # While the time is not over, nobody else writes there. Who is killed from here on has given the lock back.
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
    """In each round the holder is killed, and somebody else as well."""
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
    # Nobody is left to release it: it ends by its time, and then it is anybody's.
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
