#!/usr/bin/env bash
# The guided tour: Larder at work on this machine's own package records, step by step. `make run` installs what it needs
# and calls it.
#
# Every step says what it claims, runs commands that can be typed the same way, shows what they print, and checks it; the
# first thing that is not as claimed ends the tour with exit code 1. Everything happens in a directory of its own, and
# everything is stopped and removed at the end, also after a failure or Ctrl-C.
#
# In the environment:
#   TOUR_BIN        a directory with larderd, larderctl, package-catalog and larder-c, instead of building them
#   TOUR_AVAILABLE  `no` leaves out what apt has on offer (some 60,000 records) and takes what dpkg has installed alone
#   TOUR_LANGUAGES  the languages of descriptions, `en ja ko ru uk zh_CN` unless set; empty for none. They are
#                   fetched from Debian into .build/tour, about 9 MB once a day; without a network it does without.

set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$here")

for part in display machine records serving crash origin purging; do
    # shellcheck source=/dev/null
    . "$here/tour/$part.sh"
done

begin_tour
build_everything
take_stock
load_records
show_embedded
kill_batches
serve_the_larder
ask_from_other_processes
watch_it_expire
show_snapshot_and_batch
kill_the_daemon
show_origin
purge
end_tour
