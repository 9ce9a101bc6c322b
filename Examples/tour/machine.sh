# Prepares the programs, the directory and this machine's package records. Sourced by tour.sh.

build_everything() {
    step 'Build'
    configuration=release
    programs=${TOUR_BIN:-}
    if [ -z "$programs" ]; then
        programs=$root/.build/tour/bin
        mkdir -p "$programs" || fail "cannot make $programs"
        cd "$root" || fail "cannot enter $root"
        # This one build makes all three programs, because package-catalog depends on the others.
        build "LARDER_TOUR=1 swift build -c $configuration --product package-catalog"
        build "cc -std=c11 -O2 -Wall -Wextra -o .build/tour/bin/larder-c Examples/clients/c/larder.c"
        ln -sf "$root/.build/$configuration/larderd" "$root/.build/$configuration/larderctl" \
            "$root/.build/$configuration/package-catalog" "$programs/"
    fi
    local program
    for program in larderd larderctl package-catalog larder-c; do
        [ -x "$programs/$program" ] || fail "$programs has no program $program"
    done
    for program in nc redis-cli python3; do
        command -v "$program" >/dev/null || fail "the program $program is missing (make run installs it)"
    done
    # A socket's path is limited to about a hundred bytes, so the directory's name must be short.
    local parent=${TMPDIR:-/tmp}
    [ ${#parent} -lt 60 ] || parent=/tmp
    work=$(mktemp -d "${parent%/}/larder-tour.XXXXXX") || fail 'cannot make a directory'
    cd "$work" || fail "cannot enter $work"
    mkdir clients
    cp "$here"/clients/shell/larder.sh "$here"/clients/python/*.py clients/
    PATH=$programs:$PATH
    unset LARDER_SOCKET
    export PYTHONDONTWRITEBYTECODE=1
    claim "built $(larderd --version); what follows happens in $work"
}

# Shows the compiler's progress: on one line in a terminal, otherwise in a line for each step.
build() {
    printf '   $ %s\n' "$1"
    if [ -t 1 ]; then eval "$1"; else eval "$1" 2>&1 | sed -u 's/^/     /'; fi || fail "it does not build"
}

take_stock() {
    step "The input: this machine's own package records"
    status=/var/lib/dpkg/status
    [ -r "$status" ] || fail "$status is not there: the tour needs a Debian machine"
    installed_count=$(grep -c '^Package:' "$status")
    say "dpkg's status file has the records of $installed_count packages, with dependencies and long descriptions."
    available_count=0
    translations=0
    if [ "${TOUR_AVAILABLE:-yes}" = no ]; then
        say 'Available packages are left out (TOUR_AVAILABLE=no).'
        return
    fi
    dump_available
    if [ "$available_count" = 0 ]; then
        say "apt has no lists of available packages: running apt-get update."
        if [ "$(id -u)" = 0 ]; then timeout 120 apt-get update -qq; else sudo -n timeout 120 apt-get update -qq; fi
        dump_available
    fi
    if [ "$available_count" = 0 ]; then
        say 'There are still none: the tour continues with the installed packages.'
        return
    fi
    say "apt-cache dumpavail prints the records of $available_count available packages: $(wc -c <available.txt) bytes."
    find_translations
}

dump_available() {
    apt-cache dumpavail >available.txt 2>/dev/null
    available_count=$(grep -c '^Package:' available.txt)
}

# Fetches apt's files of descriptions in the requested languages, into a separate directory, so that the machine's settings
# do not change. If that fails, uses the files that the machine has.
find_translations() {
    local languages=${TOUR_LANGUAGES-en ja ko ru uk zh_CN}
    [ -n "$languages" ] || return 0
    local lists=$root/.build/tour/lists language files file
    local wanted=(-o Acquire::Languages=) own=(-o "Dir::State::lists=$lists" -o "Dir::Cache=$root/.build/tour/cache"
        -o APT::Sandbox::User= -o Acquire::IndexTargets::deb::Packages::DefaultEnabled=false)
    for language in $languages; do wanted+=(-o "Acquire::Languages::=$language"); done
    if [ -z "$(find "$lists/fetched" -mmin -1440 2>/dev/null)" ]; then
        mkdir -p "$lists/partial" "$root/.build/tour/cache"
        say "Descriptions in other languages ($languages) are fetched from Debian, once a day."
        # apt-get only prints a warning if it could not fetch a file.
        if LC_ALL=C timeout 60 apt-get update -qq "${own[@]}" "${wanted[@]}" >apt.log 2>&1 && ! grep -q 'ailed to fetch' apt.log; then
            touch "$lists/fetched"
        else
            say 'They could not be fetched: the tour continues with the descriptions that are there.'
        fi
    fi
    files=$(description_files "${own[@]}" "${wanted[@]}")
    [ -n "$files" ] || files=$(description_files "${wanted[@]}")
    while read -r file; do
        [ -n "$file" ] || continue
        /usr/lib/apt/apt-helper cat-file "$file" >>descriptions.txt 2>/dev/null || continue
        echo >>descriptions.txt
    done <<<"$files"
    [ ! -s descriptions.txt ] || translations=$(grep -c '^Package:' descriptions.txt)
    [ "$translations" = 0 ] || say "apt's files have $translations descriptions in these languages."
}

# Prints the paths of apt's files of descriptions, given these options.
description_files() {
    apt-get indextargets "$@" --format '$(FILENAME)' 'Created-By: Translations' 2>/dev/null
}
