#!/usr/bin/env bash
# The work of action.yml: a program under `intact watch`, or two versions of it under `intact compare`.
#
# The variables are the inputs of action.yml. INTACT is the program `intact`. INTACT_BASE is the commit that `base` means.
# INTACT_PULL_REQUEST is the number of the pull request that gets the verdict as a comment. Those that are empty ask for nothing.
set -euo pipefail

fail() {
    echo "::error title=intact::$1" >&2
    exit 2
}

# what `intact compare` runs: a version of the program, in its checkout
if [ "${1:-}" = version ]; then
    cd "$INTACT_VERSIONS/$2"
    exec bash -c "$INTACT_RUN"
fi

intact=${INTACT:-intact}
command -v "$intact" > /dev/null || fail "there is no program $intact"
[ -n "${INTACT_RUN:-}" ] || fail "run is empty: give the program to watch"

options=()
while IFS= read -r requirement; do
    [ -z "${requirement//[[:space:]]/}" ] || options+=(--require "$requirement")
done <<< "${INTACT_REQUIRE:-}"
[ -z "${INTACT_FAIL_ON:-}" ] || options+=(--fail-on "$INTACT_FAIL_ON")
[ -z "${INTACT_REPORT:-}" ] || options+=(--report "$INTACT_REPORT")

verdict=$(mktemp --suffix .md)
trap 'rm -f "$verdict"' EXIT
code=0
if [ -z "${INTACT_COMPARE_TO:-}" ]; then
    "$intact" watch "${options[@]}" --report "$verdict" -- bash -c "$INTACT_RUN" || code=$?
else
    commit=$INTACT_COMPARE_TO
    if [ "$commit" = base ]; then
        commit=${INTACT_BASE:-}
        [ -n "$commit" ] || fail "compare-to: base, but this run has no base commit; name one"
    fi
    # a checkout of CI has one commit only
    git cat-file -e "$commit^{commit}" 2> /dev/null || git fetch --quiet --depth 1 origin "$commit" \
        || fail "there is no commit $commit"
    git cat-file -e "$commit^{commit}" 2> /dev/null || commit=FETCH_HEAD
    versions=$(mktemp --directory)
    trap 'rm -f "$verdict"; git worktree remove --force "$versions/base"; rm -rf "$versions"' EXIT
    git worktree add --quiet --detach "$versions/base" "$commit"
    ln -s "$PWD" "$versions/head"
    if [ -n "${INTACT_BUILD:-}" ]; then
        for version in base head; do
            (cd "$versions/$version" && bash -c "$INTACT_BUILD") || fail "build failed in $version"
        done
    fi
    # the two command lines differ in their last word, which names the programs
    export INTACT_VERSIONS=$versions
    self=$(realpath "${BASH_SOURCE[0]}")
    "$intact" compare --rounds "${INTACT_ROUNDS:-10}" "${options[@]}" --report "$verdict" \
        -- bash "$self" version base -- bash "$self" version head || code=$?
fi

if [ ! -s "$verdict" ]; then
    reason="exit code $code, and no page was written: the log of this step has the reason"
    echo "::error title=intact::$reason" >&2
    echo "**intact**: $reason" > "$verdict"
fi
[ -z "${GITHUB_STEP_SUMMARY:-}" ] || cat "$verdict" >> "$GITHUB_STEP_SUMMARY"
[ -z "${GITHUB_OUTPUT:-}" ] || echo "exit-code=$code" >> "$GITHUB_OUTPUT"
if [ -n "${INTACT_COMPARE_TO:-}" ] && [ -n "${INTACT_PULL_REQUEST:-}" ]; then
    # a fork's token may not comment; the summary has the verdict all the same
    gh pr comment "$INTACT_PULL_REQUEST" --edit-last --create-if-none --body-file "$verdict" \
        || echo "::warning title=intact::the verdict could not be commented on the pull request"
fi
exit "$code"
