#!/usr/bin/env bash
# The work of action.yml, whose inputs are the variables: a program under `intact watch`, or two commits under `intact compare`.
# INTACT is the program `intact`, INTACT_BASE the commit that `base` means. INTACT_PULL_REQUEST gets the verdict as a comment.
set -euo pipefail

fail() {
    echo "::error title=intact::$1" >&2
    exit 2
}

intact=${INTACT:-intact}
command -v "$intact" > /dev/null || fail "there is no program $intact"
[ -n "${INTACT_RUN:-}" ] || fail "run is empty: give the program to watch"
verdict=$(mktemp --suffix .md)
trap 'rm -f "$verdict"' EXIT

options=(watch)
if [ -n "${INTACT_COMPARE_TO:-}" ]; then
    commit=$INTACT_COMPARE_TO
    [ "$commit" != base ] || commit=${INTACT_BASE:-}
    [ -n "$commit" ] || fail "compare-to: base, but this run has no base commit; name one"
    # a checkout of CI has one commit only
    has() { git cat-file -e "$commit^{commit}" 2> /dev/null; }
    has || ! git fetch --quiet --depth 1 origin "$commit" || has || commit=FETCH_HEAD
    options=(compare --commits "$commit..HEAD" --rounds "${INTACT_ROUNDS:-10}")
    [ -z "${INTACT_BUILD:-}" ] || options+=(--setup 'bash -c "$INTACT_BUILD"')
fi
while IFS= read -r requirement; do
    [ -z "${requirement//[[:space:]]/}" ] || options+=(--require "$requirement")
done <<< "${INTACT_REQUIRE:-}"
[ -z "${INTACT_FAIL_ON:-}" ] || options+=(--fail-on "$INTACT_FAIL_ON")
[ -z "${INTACT_REPORT:-}" ] || options+=(--report "$INTACT_REPORT")

code=0
"$intact" "${options[@]}" --report "$verdict" -- bash -c "$INTACT_RUN" || code=$?
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
