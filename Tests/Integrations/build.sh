#!/bin/sh
# Builds the integrations of Examples, and the program that uses them, in the directory $1, which must be two directories below the
# repository. Their dependencies are replaced by stand-ins: a local git repository for each, which SwiftPM uses as a mirror.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
cd "$1"
rm -rf repositories exercise
mkdir repositories
cp -R "$here/Exercise" exercise
for stand_in in "$here"/StandIns/*; do
  name=$(basename "$stand_in")
  cp -R "$stand_in" "repositories/$name"
  case $name in
    swift-log) url=https://github.com/apple/swift-log.git version=1.6.0;;
    swift-metrics) url=https://github.com/apple/swift-metrics.git version=2.5.0;;
    swift-service-lifecycle) url=https://github.com/swift-server/swift-service-lifecycle.git version=2.6.0;;
    hummingbird) url=https://github.com/hummingbird-project/hummingbird.git version=2.5.0;;
    vapor) url=https://github.com/vapor/vapor.git version=4.110.0;;
  esac
  # A fixed date, so that unchanged stand-ins have the same commit and are not compiled again.
  (cd "repositories/$name" && git init -q && git add . &&
    GIT_AUTHOR_DATE='2026-01-01T00:00:00Z' GIT_COMMITTER_DATE='2026-01-01T00:00:00Z' \
    git -c user.name=test -c user.email=test@localhost commit -qm "Stand-in for $name" && git tag "$version")
  swift package --package-path exercise config set-mirror --original "$url" --mirror "file://$PWD/repositories/$name" >/dev/null
done
rm -rf build/checkouts build/repositories build/workspace-state.json build/debug.yaml
swift build --package-path exercise --scratch-path build --cache-path cache --product exercise
