"""Many processes request the same value, and one of them reads it from the origin.

Arguments: the socket, the path of larderctl, the number of rounds, a seed. The clients are threads with Python's socket
module only, threads with redis-py, and larderctl processes. They run at the same time: 30 processes with 20 threads each,
and 20 larderctl processes.

- storm: all clients request a new key. The origin is read once.
- kills: as in storm, but the process that reads the origin is killed at a random moment. The origin is read at most once
  more.
- invalidations: a writer changes the origin, and then writes, removes or purges the entry. After the acknowledgement, no
  client gets an older value.
"""

import multiprocessing
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../../../Examples/clients/python"))

import redis
from expecting import all_is_well, expect, expect_in
from larder import Larder

path, larderctl, rounds, seed = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
PROCESSES, THREADS, SHELLS = 30, 20, 20
# Less than the 30 seconds of a lease: a client that waits longer was not woken.
WAIT = 20_000

fork = multiprocessing.get_context("fork")
random.seed(seed)


class RedisPy:
    """redis-py with the interface of the class Larder."""

    def __init__(self):
        self._client = redis.Redis(unix_socket_path=path, single_connection_client=True)

    def command(self, *words):
        return self._client.execute_command(*words)

    def close(self):
        self._client.close()


def connect(number):
    return Larder(path, timeout=60) if number % 2 == 0 else RedisPy()


def text(value):
    return value.decode() if isinstance(value, bytes) else value


def fetch(client, key, ask, *options):
    """Returns the state and the value of a key. If this client gets the lease, ask() returns the value."""
    state, value, token, *_ = client.command("FETCH", key, "WAIT", WAIT, *options)
    if text(state) == "lead":
        made = ask()
        client.command("SET", key, made, "TOKEN", token)
        return "lead", made
    return text(state), text(value)


class Origin:
    """Records the process of each read of the origin, one line per read, in order."""

    def __init__(self, directory):
        self.name = os.path.join(directory, "origin")
        os.mkfifo(self.name)
        # Open for reading and writing: then the pipe works even if no other process has it open.
        self._pipe = os.open(self.name, os.O_RDWR)
        self._reader = os.fdopen(self._pipe, "r", closefd=False)

    def tell(self, key):
        os.write(self._pipe, f"{key} {os.getpid()}\n".encode())

    def next(self):
        key, process = self._reader.readline().split()
        return key, int(process)

    def told(self):
        """Returns all lines so far."""
        os.write(self._pipe, b"end 0\n")
        lines = []
        while (line := self.next())[0] != "end":
            lines.append(line)
        return lines


def work(number, origin, jobs, answers):
    """Runs one process: it receives keys, and each of its threads requests each key."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    clients = [connect(number + index) for index in range(THREADS)]
    chance = random.Random(seed + number)

    def ask_for(client, key, pause, found):
        def ask():
            origin.tell(key)
            time.sleep(pause)
            return f"value of {key}"

        found.append(fetch(client, key, ask))

    while (key := jobs.recv()) is not None:
        found = []
        threads = [
            threading.Thread(target=ask_for, args=(client, key, chance.random() * 0.03, found)) for client in clients
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        answers.send(found)


class Worker:
    def __init__(self, number, origin):
        self._jobs, theirs = fork.Pipe()
        self.answers, answers = fork.Pipe(duplex=False)
        self.process = fork.Process(target=work, args=(number, origin, theirs, answers))
        self.process.start()
        # Close these copies, so that the pipes close when the process ends.
        theirs.close()
        answers.close()

    def send(self, key):
        self._jobs.send(key)

    def found(self):
        """Returns the results; an empty list if the process was killed."""
        try:
            return self.answers.recv()
        except EOFError:
            return []

    def end(self):
        try:
            self.send(None)
        except BrokenPipeError:
            pass
        self.process.join()


def shells(origin, key):
    command = 'echo "$1 $PPID" > "$0"; sleep 0.01; printf "value of %s" "$1"'
    words = [larderctl, "fetch", key, "--wait", str(WAIT), "--json", "--", "sh", "-c", command, origin.name, key]
    environment = {**os.environ, "LARDER_SOCKET": path}
    return [
        subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment)
        for _ in range(SHELLS)
    ]


def storm(name, origin, kills):
    workers = [Worker(number, origin) for number in range(PROCESSES)]
    count = 0
    for turn in range(rounds):
        key = f"{name}:{turn}"
        programs = []
        for worker in random.sample(workers, len(workers)):
            worker.send(key)
        programs = shells(origin, key)
        leaders = []
        if kills:
            leaders.append(origin.next())
            time.sleep(random.random() * 0.03)
            try:
                os.kill(leaders[0][1], signal.SIGKILL)
            except ProcessLookupError:
                pass  # The shell has already ended.
        answers = 0
        for index, worker in enumerate(workers):
            for state, value in worker.found():
                expect_in(state, ("fresh", "lead"))
                expect(value, f"value of {key}")
                answers += 1
            if not worker.process.is_alive() or kills and leaders[0][1] == worker.process.pid:
                worker.process.join()
                workers[index] = Worker(index, origin)
        for program in programs:
            output, _ = program.communicate()
            if program.returncode != -signal.SIGKILL:
                expect(program.returncode, 0)
                if f'"value":"value of {key}"'.encode() not in output:
                    raise AssertionError(f"larderctl answered {output!r}")
                answers += 1
        leaders += origin.told()
        expect({leader[0] for leader in leaders}, {key})
        if len(leaders) > (2 if kills else 1) or not leaders:
            raise AssertionError(f"{key}: the origin was asked by {leaders}")
        if answers < (PROCESSES - 1) * THREADS + SHELLS - 1:
            raise AssertionError(f"{key}: only {answers} answers")
        count += len(leaders) - 1
        # Print the progress, because the test waits only as long as there is output.
        if turn % 10 == 9:
            print(f"{name}: {turn + 1} of {rounds} rounds", flush=True)
    for worker in workers:
        worker.end()
    print(f"{name}: {rounds} rounds of {PROCESSES} * {THREADS} + {SHELLS} clients, {count} asked once more")


def invalidations():
    """The value at the origin is a number that only increases."""
    present, acknowledged, done = (fork.Value("q", 0) for _ in range(3))

    def read(number):
        client = connect(number)
        chance = random.Random(seed + number)
        count = 0
        while not done.value:
            least = acknowledged.value

            def ask():
                value = present.value
                time.sleep(chance.random() * 0.002)
                return str(value)

            state, value = fetch(client, "n:key", ask)
            expect_in(state, ("fresh", "lead"))
            if state == "fresh" and int(value) < least:
                raise AssertionError(f"{value} was served after {least} was acknowledged")
            count += 1
        client.close()
        if count == 0:
            raise AssertionError("nothing was read")

    readers = [fork.Process(target=read, args=(number,)) for number in range(8)]
    for reader in readers:
        reader.start()
    writer = connect(0)
    for value in range(1, 60 * rounds + 1):
        present.value = value
        change = random.choice(
            [("SET", "n:key", value), ("DEL", "n:key"), ("PURGE", "PREFIX", "n:"), ("PURGE",), ("PURGE",)]
        )
        writer.command(*change)
        acknowledged.value = value
        if value % 1000 == 0:
            print(f"invalidations: {value}", flush=True)
        time.sleep(random.random() * 0.003)
    done.value = 1
    for reader in readers:
        reader.join()
        expect(reader.exitcode, 0)
    writer.close()
    print(f"invalidations: {60 * rounds}")


with tempfile.TemporaryDirectory() as directory:
    origin = Origin(directory)
    storm("storm", origin, kills=False)
    storm("kills", origin, kills=True)
    invalidations()
all_is_well()
