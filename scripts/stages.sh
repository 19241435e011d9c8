# Sourced by demo and test: runs named stages and prints how long each of them took.
stages=()
stage() {
    local name=$1 began=$SECONDS
    shift
    echo "== $name" >&2
    if ! "$@"; then
        stages+=("$name: FAILED after $((SECONDS - began)) s")
        stages_table
        exit 1
    fi
    stages+=("$name: $((SECONDS - began)) s")
}
stages_table() {
    echo "== time" >&2
    printf '  %s\n' "${stages[@]}" "all: $SECONDS s" >&2
}
