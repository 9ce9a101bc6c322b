#!/bin/bash
# Makes HTML of the documentation of Larder and LarderClient, and fails where a link leads nowhere.
#
#   docs/html.sh PRODUCTS OUTPUT    PRODUCTS: where `swift build` put the modules, such as .build/debug
set -euo pipefail
cd "$(dirname "$0")/.."
products=$1 output=$2

if [ "$(uname)" = Darwin ]; then
  docc=$(xcrun --find docc 2>/dev/null || true)
  platform=(-sdk "$(xcrun --show-sdk-path)" -Xcc -I/opt/homebrew/include)
else
  docc=$(dirname "$(readlink -f "$(command -v swift)")")/docc
  platform=()
fi
[ -x "$docc" ] || { echo "this toolchain has no docc: no HTML was made"; exit 0; }

triple=$(swift -print-target-info | sed -n 's/^ *"triple": "\(.*\)",$/\1/p' | head -1)
for map in Sources/System/*/module.modulemap "$products"/*.build/module.modulemap; do
  platform+=(-Xcc "-fmodule-map-file=$map")
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for module in Larder LarderClient; do
  mkdir -p "$work/$module" "$output"
  # What a module hands on from others is part of what its users see.
  "$(dirname "$docc")"/swift-symbolgraph-extract -module-name $module -I "$products/Modules" -target "$triple" "${platform[@]}" \
    -minimum-access-level public -skip-synthesized-members -output-dir "$work/$module" \
    -experimental-allowed-reexported-modules=LarderFetching,LarderVocabulary,LarderModelCoding,LarderModelQueries,LarderQueries,LarderObserving,LarderEngine,LarderRESP
  rm -rf "${output:?}/$module"
  "$docc" convert Sources/$module/$module.docc --warnings-as-errors \
    --fallback-display-name $module --fallback-bundle-identifier larder.$module \
    --additional-symbol-graph-dir "$work/$module" \
    --transform-for-static-hosting --hosting-base-path $module --output-path "$output/$module"
  cp "$work/$module/$module.symbols.json" "$output/$module.symbols.json"
done
