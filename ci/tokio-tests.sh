#!/usr/bin/env bash
# Tokio's own tests of `sync`, `time`, `process`, `select!`, `join!`, `try_join!`, and some of `task`, `runtime`,
# `signal`, `fs`, `net` and `io`, on Urgency. By hand: it takes some minutes.
#
#   ci/tokio-tests.sh              all files
#   ci/tokio-tests.sh sync_mpsc .. some files
#
# The tests are those of the tokio in Cargo.lock, as crates.io has it; a copy is made under target/, and nothing of it
# is kept here. In a crate of its own `tokio` is Urgency by a line in Cargo.toml, and the files are copied as they are,
# but for the tests that ci/tokio-tests.left-out names, each with its reason. The run fails if a test fails, if a file
# does not compile, or if a name in that list is not there. A run of all files also fails if fewer than 360 of `sync`
# pass: so the list does not grow unseen.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD out=${CARGO_TARGET_DIR:-target}/tokio-tests list=$PWD/ci/tokio-tests.left-out
cargo fetch --locked --quiet
manifest=$(cargo metadata --format-version 1 --locked --all-features | grep -o '"manifest_path":"[^"]*/tokio-[0-9.]*/Cargo.toml"')
theirs=$(dirname "$(cut -d'"' -f4 <<<"$manifest")")/tests
[ -d "$theirs" ] || { echo "no tests in $theirs" >&2; exit 1; }

# Not taken, and why. Only for other systems than this one: sync_emscripten_blocking, time_wasm. Of Tokio's unstable
# interface: time_alt. Of the attribute's name, which rustc resolves before us: macros_rename_test. Of a panic in the drop
# of a result, which is the dropping code's here: join_handle_panic. Of names that are not there: fs, fs_file, rt_basic,
# rt_busy_tick, rt_panic, rt_threaded, io_panic, async_send_sync. Of figures that a worker on a thread of its own changes
# meanwhile: rt_metrics. Of options that are set through `AsFd`: tcp_socket, net_quickack, udp. Of a permission that root
# has: fs_try_exists. Of `Handle::block_on` after the end of its runtime, which is a panic here: rt_handle_block_on. Of the
# panics where no runtime was made, and the global one serves: no_rt, signal_no_rt, signal_panic, net_panic,
# net_bind_resource, task_panic. Of sockets that belong to the runtime which made them: io_driver_drop. Of a limit of
# threads that counts only those that block: rt_blocking_thread_exhaust. Of a signal that comes before its listener is
# made: signal_drop_recv. Of Tokio's own code: the other files of io.
files=(sync_barrier sync_broadcast sync_broadcast_weak sync_errors sync_mpsc sync_mpsc_weak sync_mutex sync_mutex_owned
    sync_notify sync_notify_owned sync_once_cell sync_oneshot sync_panic sync_rwlock sync_semaphore
    sync_semaphore_owned sync_set_once sync_watch
    time_interval time_panic time_pause time_rt time_sleep time_timeout
    macros_select macros_join macros_try_join macros_pin macros_test
    task_abort task_blocking task_id task_join_set task_local task_local_set coop_budget test_clock unwindsafe
    rt_common rt_handle rt_local rt_shutdown_err rt_spawn_blocking rt_time_start_paused
    signal_ctrl_c signal_drop_rt signal_drop_signal signal_multi_rt signal_notify_both signal_realtime
    signal_twice signal_usr1
    fs_canonicalize_dir fs_copy fs_dir fs_link fs_open_options fs_remove_dir_all fs_remove_file fs_rename fs_write
    net_lookup_host net_unix_pipe tcp_accept tcp_accept_ready tcp_connect tcp_echo tcp_into_split tcp_into_std tcp_peek
    tcp_shutdown tcp_split tcp_stream uds_cred uds_datagram uds_socket uds_split uds_stream unix_shutdown
    buffered duplex_stream io_copy io_split
    process_arg0 process_change_of_runtime process_issue_2174 process_issue_42 process_issue_7144 process_issue_8042
    process_kill_after_wait process_kill_on_drop process_smoke)
if [ $# -gt 0 ]; then
    files=("$@")
fi

rm -rf "$out/tests"
mkdir -p "$out/tests" "$out/src"
cp -r "$theirs/support" "$out/tests/support"
cp Cargo.lock "$out/Cargo.lock"
: > "$out/src/lib.rs"
cat > "$out/Cargo.toml" <<TOML
[package]
name = "tokio-tests"
version = "0.0.0"
edition = "2021"
publish = false

[workspace]

[features]
default = ["full", "fs", "io-util", "macros", "net", "process", "rt", "rt-multi-thread", "sync", "test-util"]
full = []
fs = []
io-util = []
net = []
macros = []
process = []
rt = []
rt-multi-thread = []
sync = []
test-util = []

[dependencies]
tokio = { package = "urgency", path = "$root/crates/urgency", features = ["tokio-io"] }

[dev-dependencies]
bytes = "1"
futures = "0.3"
futures-test = "0.3"
libc = "0.2"
nix = { version = "0.31", default-features = false, features = ["fs", "socket"] }
rand = "0.9"
socket2 = "0.6"
tempfile = "3"
tokio-stream = "0.1"
tokio-test = "0.4"
TOML

# Leaves out the functions that are named, with their attributes and the comments above them.
leave_out() { # NAMES
    awk -v names="$1" '
        BEGIN { count = split(names, list, " "); for (i = 1; i <= count; i++) wanted[list[i]] = 1 }
        # How many of the square brackets that a line opens are open at its end.
        function opened(line) { return gsub(/\[/, "", line) - gsub(/\]/, "", line) }
        skipping { if ($0 == end) skipping = 0; next }
        open > 0 { held = held $0 "\n"; open += opened($0); next }
        match($0, /^ *(pub )?(async )?fn [a-z0-9_]+/) {
            name = substr($0, 1, RLENGTH); sub(/.* /, "", name)
            if (name in wanted) {
                seen[name] = 1; held = ""
                indent = $0; sub(/[^ ].*/, "", indent); end = indent "}"
                if ($0 !~ /}$/) skipping = 1
                next
            }
        }
        /^ *(#\[|\/\/\/)/ { held = held $0 "\n"; open = /^ *#/ ? opened($0) : 0; next }
        { printf "%s", held; held = ""; print }
        END {
            printf "%s", held
            for (name in wanted) if (!(name in seen)) { print "not there: " name > "/dev/stderr"; exit 1 }
        }'
}
number_of_tests() { grep -cE '^ *#\[(cfg_attr\(not\(.*, )?(::)?(tokio::|std::prelude::v1::|maybe_tokio_)?test(\(.*\))?\)?\]' "$1" || true; }

left=0 sync_total=0
for file in "${files[@]}"; do
    names=$(awk -v file="$file" '$1 ~ "^" file "::" { sub(/.*::/, "", $1); print $1 }' "$list" | tr '\n' ' ')
    leave_out "$names" < "$theirs/$file.rs" > "$out/tests/$file.rs"
    all=$(number_of_tests "$theirs/$file.rs") kept=$(number_of_tests "$out/tests/$file.rs")
    left=$((left + all - kept))
    [[ $file != sync_* ]] || sync_total=$((sync_total + all))
done

cd "$out"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
result=0
CARGO_TARGET_DIR=. RUSTFLAGS="${RUSTFLAGS:-} -A warnings" timeout 1800 cargo test --no-fail-fast \
    $(printf -- '--test %s ' "${files[@]}") 2>&1 | tee "$log" || result=$?
# How many tests pass in the files that begin with PREFIX.
passed() { # PREFIX
    awk -v prefix="tests/$1" '
        $1 == "Running" { counts = index($2, prefix) == 1 }
        counts && /^test result:/ { sum += $4 }
        END { print sum + 0 }' "$log"
}
# A test in a macro is one that is left out, and passes once for each use of the macro.
echo "$(passed "") tests pass; $left are left out (ci/tokio-tests.left-out)"
if [ $# -eq 0 ]; then
    sync=$(passed sync_) least=360
    echo "$sync of $sync_total tests of sync pass; it must be $least"
    if [ "$sync" -lt "$least" ]; then
        echo "too many of Tokio's tests of sync are left out: take names out of ci/tokio-tests.left-out" >&2
        exit 1
    fi
fi
exit $result
