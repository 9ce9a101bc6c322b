"""Checks for the Python scripts. The first failed check stops the script, and shows the value found."""

import threading


def expect(found, wanted):
    if found != wanted:
        raise AssertionError(f"found {found!r}, wanted {wanted!r}")


def expect_in(found, wanted):
    if found not in wanted:
        raise AssertionError(f"found {found!r}, wanted one of {wanted!r}")


def expect_error(kind, text, call, *words, **options):
    """Expects `call` to raise an error of the class `kind` whose text begins with `text`."""
    try:
        found = call(*words, **options)
    except kind as error:
        if not str(error).startswith(text):
            raise AssertionError(f"found the error {error!r}, wanted {text!r}") from error
    else:
        raise AssertionError(f"{words}: found {found!r}, wanted the error {text!r}")


def in_threads(count, work):
    """Runs work(0) … work(count - 1) concurrently; an error in one of them is raised here."""
    failures = []

    def run(number):
        try:
            work(number)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def message(subscriber):
    """Returns the next message of a redis-py subscriber. Raises an error if none arrives within a minute."""
    found = subscriber.get_message(timeout=60)
    if found is None:
        raise AssertionError("no message came")
    return tuple(found[name] for name in ("type", "pattern", "channel", "data"))


def all_is_well():
    """Prints the last line of every script, which shows that the script has completed."""
    print("all is well")
