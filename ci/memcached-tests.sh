#!/usr/bin/env bash
# Runs memcached's own perl tests against `urgency cache`, and compares with ci/memcached-tests.expected.
#
#   ci/memcached-tests.sh            # all that can pass
#   ci/memcached-tests.sh touch.t    # some, with their output
#
# The tests are not part of this repository: they are taken from Debian's source package of memcached (apt-get
# source). They need perl, and a C compiler for nothing. Environment: URGENCY is the binary (default: builds
# the release), WORK a directory to keep the source in (default: target/memcached-tests), EACH the time limit
# of one file in seconds (120).
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
work=${WORK:-$root/target/memcached-tests}
each=${EACH:-120}
if [ -z "${URGENCY:-}" ]; then
    cargo build --release --locked -p urgency-cli --bin urgency
    URGENCY=$root/target/release/urgency
fi

mkdir -p "$work"
source=$(find "$work" -maxdepth 1 -type d -name 'memcached-1.*' | head -n 1)
if [ -z "$source" ]; then
    (
        cd "$work"
        mkdir -p apt/partial
        . /etc/os-release
        echo "deb-src http://deb.debian.org/debian ${VERSION_CODENAME:-stable} main" > source.list
        options=(-o "Dir::Etc::sourcelist=$work/source.list" -o Dir::Etc::sourceparts=/dev/null -o "Dir::State::lists=$work/apt")
        apt-get "${options[@]}" update
        apt-get "${options[@]}" source --download-only memcached
        tar xf memcached_*.orig.tar.*
    )
    source=$(find "$work" -maxdepth 1 -type d -name 'memcached-1.*' | head -n 1)
fi

# What the tests start: `memcached-debug` in their build directory, through `timedrun`, which ends it after a time.
cat > "$source/memcached-debug" <<END
#!/bin/sh
exec "$URGENCY" cache --debug-commands "\$@"
END
cat > "$source/timedrun" <<'END'
#!/bin/sh
shift
exec "$@"
END
chmod +x "$source/memcached-debug" "$source/timedrun"
cd "$source"

if [ $# -gt 0 ]; then
    for test in "$@"; do
        timeout -k 5 "$each" prove -v "t/$test" || true
    done
    exit
fi

failed=0 passed=0 excluded=0 unexpected=()
for path in t/*.t; do
    test=${path#t/}
    if why=$(grep -P "^$test\t" "$root/ci/memcached-tests.expected"); then
        excluded=$((excluded + 1))
        echo "excluded  $test: ${why#*$'\t'}"
        continue
    fi
    if timeout -k 5 "$each" prove -Q "$path" > "$work/$test.out" 2>&1; then
        passed=$((passed + 1))
        echo "ok        $test"
    else
        failed=$((failed + 1))
        unexpected+=("$test")
        echo "FAILED    $test (see $work/$test.out)"
    fi
done
echo "$passed passed, $failed failed, $excluded excluded"
if [ "$failed" -gt 0 ]; then
    echo "failed: ${unexpected[*]}"
    exit 1
fi
