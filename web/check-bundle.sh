#!/bin/sh
# Builds the console from its sources and compares it byte for byte with the committed web/dist.
# Exit: 0 the same, 1 different, 77 skipped (no node or npm, or the packages cannot be fetched).
set -u
web=$(cd "$(dirname "$0")" && pwd)

for tool in node npm; do
    if ! command -v "$tool" >/dev/null 2>&1; then
        echo "skipped: $tool is not installed"
        exit 77
    fi
done

work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM

# A fresh copy, so that the check never depends on (or touches) a developer's node_modules.
cp -R "$web/src" "$web/index.html" "$web/build.mjs" "$web/package.json" "$web/package-lock.json" \
    "$web/tsconfig.json" "$web/.npmrc" "$work/" || exit 1
cd "$work" || exit 1
if ! npm ci --ignore-scripts --no-audit --no-fund >npm.log 2>&1; then
    if grep -Eq 'ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ETIMEDOUT|ECONNRESET|ENETUNREACH|ENOTCACHED' npm.log; then
        echo "skipped: the npm registry cannot be reached"
        exit 77
    fi
    cat npm.log
    exit 1
fi
npm run --silent typecheck || exit 1
npm run --silent build || exit 1

status=0
for file in index.html app.js app.css plot.js dagre.js alerts.js cameras.js clusters.js enrol.js passage.js snapshots.js; do
    if ! cmp "dist/$file" "$web/dist/$file"; then
        status=1
    fi
done
if [ "$status" -ne 0 ]; then
    echo "web/dist differs from a build of web/src: run 'npm ci && npm run build' in web/ and commit web/dist"
else
    echo "web/dist is what web/src builds"
fi
exit "$status"
