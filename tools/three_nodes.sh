#!/usr/bin/env bash
# Three nodes of one cluster on 127.0.0.1, 127.0.0.2 and 127.0.0.3, for ./run, whose --help tells
# what an operator sees.
#
#   three_nodes.sh PROGRAM all|1|2|3 DATA CQL-PORT ADMIN-PORT NODE-PORT [ARGUMENT...]
#
# `all` starts the three and looks after them until a signal. They are sessions of their own: a
# terminal's Ctrl-C reaches this script alone, which stops them in order; if it is killed itself,
# the kernel tells them to stop. A number becomes that one node.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

program=$1 which=$2 data=$3 cql=$4 admin=$5 port=$6
shift 6
settings=(--config "$(dirname "${BASH_SOURCE[0]}")/three_nodes.yaml")
for argument in "$@"; do
  case $argument in
    --config | --config=*) settings=() ;;
  esac
done
cores=$(($(nproc) / 3))
settings+=(--cores "$((cores > 0 ? cores : 1))")

folder_of() { printf '%s/node%s' "$data" "$1"; }
log_of() { printf '%s/node%s.log' "$data" "$1"; }

# Becomes the node, run by the command in `as`. What it has to say goes to its log.
as=()
become() {
  local n=$1
  shift
  printf '%s\n' "$BASHPID" >"$data/node$n.pid"
  exec ${as[@]+"${as[@]}"} "$program" node ${settings[@]+"${settings[@]}"} \
    --data "$(folder_of "$n")" --listen "127.0.0.$n:$port" --cql "127.0.0.$n:$cql" \
    --admin "127.0.0.$n:$admin" --seeds "127.0.0.1:$port,127.0.0.2:$port,127.0.0.3:$port" \
    "$@" 2>>"$(log_of "$n")"
}

ensure_folder "$data"
if [[ $which != all ]]; then
  step "node $which on 127.0.0.$which:$cql, with its log in $(log_of "$which")"
  become "$which" "$@"
fi

exec 9<>"$data/run.lock" || die "cannot write to $data/run.lock"
flock --nonblock 9 ||
  die "three nodes run in $data already, looked after by process $(cat "$data/run.lock")"
printf '%s\n' $$ >"$data/run.lock"

declare -A pids=() # of those that run, by number
signals=0
starting=true # not all are in `pids`

stop_nodes() {
  ((${#pids[@]} == 0)) || kill -TERM "${pids[@]}" 2>/dev/null || true
}

# A node that is told a second time ends at once.
on_signal() {
  signals=$((signals + 1))
  printf '\n'
  if ((signals == 1)); then
    step "stopping; a second Ctrl-C does not wait"
  fi
  $starting || stop_nodes
}
trap on_signal INT TERM HUP

# Waits for all that run to end.
join_nodes() {
  local n
  while ((${#pids[@]} > 0)); do
    for n in "${!pids[@]}"; do
      # A signal ends the wait, not the node.
      while kill -0 "${pids[$n]}" 2>/dev/null; do
        wait "${pids[$n]}" || true
      done
      unset "pids[$n]"
    done
  done
}

give_up() {
  stop_nodes
  join_nodes
  die "$*"
}

stop_if_told() {
  ((signals > 0)) || return 0
  join_nodes
  step "stopped; the data stays in $data"
  exit 0
}

# The last thing that the node said; what a start fails with is one line.
last_words() {
  tail -n 1 "$(log_of "$1")"
}

is_healthy() {
  local line
  { exec 8<>"/dev/tcp/127.0.0.$1/$admin"; } 2>/dev/null || return 1
  printf 'GET /healthz HTTP/1.1\r\nHost: helenus\r\nConnection: close\r\n\r\n' >&8
  read -r -t 5 line <&8 || true
  exec 8>&-
  [[ $line == *" 200 "* ]]
}

sees_all() {
  [[ $("$program" status --admin "127.0.0.$1:$admin" 2>/dev/null) == *"3 of 3 nodes up"* ]]
}

# Returns when each node is up and sees the others up.
await_agreement() {
  local n began=$SECONDS told=$SECONDS
  local waiting=(1 2 3)
  while ((${#waiting[@]} > 0)); do
    stop_if_told
    for n in "${!pids[@]}"; do
      kill -0 "${pids[$n]}" 2>/dev/null && continue
      unset "pids[$n]"
      give_up "node $n did not start: $(last_words "$n"); its log is $(log_of "$n")"
    done
    n=${waiting[0]}
    if is_healthy "$n" && sees_all "$n"; then
      waiting=("${waiting[@]:1}")
      continue
    fi
    if ((SECONDS - told >= 5)); then
      told=$SECONDS
      step "waiting for node $n for $((SECONDS - began)) s: $(last_words "$n")"
    fi
    sleep 0.1 || true # Ctrl-C ends it
  done
}

tell_what_to_do() {
  local n
  step "up: three nodes, after $SECONDS s"
  for n in 1 2 3; do
    printf '  node %s   127.0.0.%s:%s, pid %s, log %s\n' \
      "$n" "$n" "$cql" "${pids[$n]}" "$(log_of "$n")"
  done
  cat <<TEXT
  connect  any driver of Cassandra, with any of them: README.md shows how; or: cqlsh 127.0.0.1 $cql
  look     $program status$([[ $admin == 7070 ]] || echo " --admin 127.0.0.1:$admin")
  try      kill -9 ${pids[3]}  ends node 3, and QUORUM goes on through the others;
           ./run --node 3  brings it back, and it catches up
  stop     Ctrl-C; the data stays in $data
TEXT
}

note_end() {
  local n=$1 pid=$2 status=$3 how="ended with exit code $3"
  ((status <= 128)) || how="was ended by SIG$(kill -l "$((status - 128))")"
  step "node $n (pid $pid) $how; ${#pids[@]} of 3 go on. Its log is $(log_of "$n");" \
    "./run --node $n starts it again"
}

for n in 1 2 3; do
  ensure_folder "$(folder_of "$n")"
  : >>"$(log_of "$n")" || die "cannot write to $(log_of "$n")"
done
step "starting three nodes in $data/node1, $data/node2 and $data/node3"
as=(setsid setpriv --pdeathsig TERM --)
for n in 1 2 3; do
  (become "$n" "$@") >>"$(log_of "$n")" 9>&- </dev/null &
  pids[$n]=$!
done
starting=false
((signals == 0)) || stop_nodes
await_agreement
tell_what_to_do

# Returns when all have ended; a signal ends the program.
look_after_nodes() {
  local n pid status
  while ((${#pids[@]} > 0)); do
    stop_if_told
    for n in "${!pids[@]}"; do
      pid=${pids[$n]}
      ! kill -0 "$pid" || continue
      status=0
      wait "$pid" || status=$?
      unset "pids[$n]"
      note_end "$n" "$pid" "$status"
    done
    sleep 0.3 || true # Ctrl-C ends it
  done
}
# Without the shell's own word of who was killed.
look_after_nodes 2>/dev/null
fail "no node runs any more; the logs are $(log_of 1), $(log_of 2) and $(log_of 3)"
