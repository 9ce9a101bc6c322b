#!/usr/bin/env bash
# The guided tour: Larder at work on this machine's own package records, step by step. `make run` installs what it needs
# and calls it.
#
# Every step runs commands that you could type yourself, shows their output, checks it, and prints what it has shown. The
# first failed check ends the tour with exit code 1. All files are in a temporary directory. At the end, also after a
# failure or Ctrl-C, all programs are stopped and the directory is removed.
#
# Environment variables:
#   TOUR_BIN        a directory with larderd, larderctl, package-catalog and larder-c, instead of building them
#   TOUR_AVAILABLE  `no` loads only the records of installed packages, without the 60,000 available ones
#   TOUR_LANGUAGES  the languages of descriptions; by default `en ja ko ru uk zh_CN`, empty for none. They are
#                   fetched from Debian into .build/tour, about 9 MB at most once a day, if there is a network.

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
find_models
kill_batches
serve_the_larder
ask_from_other_processes
find_models_from_other_processes
watch_it_expire
show_snapshot_and_batch
kill_the_daemon
show_origin
purge
end_tour
