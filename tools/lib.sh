# What ./run, ./test, ./bench/run and ./lab/run share: packages, folders, configuring and building.
#
# Sourced, with the repository's root as the working directory. A fault of the surroundings (a
# missing package, a folder that cannot be written) is one line on standard error and exit code 2;
# a build that fails is exit code 1.
# shellcheck shell=bash

PRESETS=(dev asan tsan release fuzz)
PACKAGES_FILE=${HELENUS_PACKAGES_FILE:-tools/packages.txt}

die() {
  printf '%s: %s\n' "${0##*/}" "$*" >&2
  exit 2
}

fail() {
  printf '%s: %s\n' "${0##*/}" "$*" >&2
  exit 1
}

step() {
  printf '== %s\n' "$*"
}

# The packages of some parts of the list, one a line.
packages_of() {
  local line part=""
  while IFS= read -r line; do
    line=${line%%#*}
    line=${line//[[:space:]]/}
    case $line in
      "") ;;
      \[*\]) part=${line:1:-1} ;;
      *) [[ " $* " != *" $part "* ]] || printf '%s\n' "$line" ;;
    esac
  done <"$PACKAGES_FILE"
}

# Those of them that are not installed, one a line.
missing_packages() {
  local wanted installed
  wanted=$(packages_of "$@" | sort -u)
  # dpkg-query fails when it has never heard of one of them, and still tells about the others.
  # shellcheck disable=SC2016,SC2086  # dpkg's own variables; one word a package
  installed=$({ dpkg-query -W -f '${db:Status-Status} ${Package}\n' $wanted 2>/dev/null || true; } |
    sed -n 's/^installed //p' | sort -u)
  comm -23 <(printf '%s\n' "$wanted") <(printf '%s\n' "$installed")
}

# Installs what is missing of these parts of the list, as root or through sudo.
ensure_packages() {
  [[ -r $PACKAGES_FILE ]] || die "cannot read $PACKAGES_FILE"
  command -v dpkg-query >/dev/null || die "needs Debian 12: dpkg-query is not there"
  local missing
  missing=$(missing_packages "$@" | tr '\n' ' ')
  missing=${missing% }
  [[ -n $missing ]] || return 0

  local as_root=()
  # shellcheck disable=SC2206  # one word a package
  local install=(apt-get install -y --no-install-recommends $missing)
  local by_hand="apt-get update && ${install[*]}"
  if [[ $(id -u) != 0 ]]; then
    command -v sudo >/dev/null || die "missing packages; as root run: $by_hand"
    as_root=(sudo)
  fi
  step "installing Debian packages: $missing"
  # An update that fails in part may still have brought all we need: the install decides.
  "${as_root[@]}" apt-get -q update || true
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive "${install[@]}" ||
    die "could not install packages; as root run: $by_hand"
}

# Makes sure that a folder is there and can be written.
ensure_folder() {
  { mkdir -p "$1" && [[ -w $1 && -x $1 ]]; } 2>/dev/null || die "cannot write to the folder $1"
}

is_preset() {
  [[ " ${PRESETS[*]} " == *" $1 "* ]]
}

# Configures a preset; quiet unless it fails. Further arguments go to cmake.
configure() {
  local preset=$1
  shift
  local log=build/$preset/configure.log
  step "$preset: configuring"
  ensure_folder build
  ensure_folder "build/$preset"
  if ! cmake --preset "$preset" "$@" >"$log" 2>&1; then
    cat "$log" >&2
    fail "configuring preset $preset failed"
  fi
}

# Whether a preset's build can tell by itself what changed since it was configured.
is_configured() {
  [[ -f build/$1/build.ninja && build/$1/build.ninja -nt CMakePresets.json ]]
}

# Builds a configured preset; further arguments go to the build.
build() {
  local preset=$1 began=$SECONDS
  shift
  step "$preset: building"
  # A user without a home still gets a compiler cache.
  local cache=${CCACHE_DIR:-${XDG_CACHE_HOME:-${HOME:-/}/.cache}/ccache}
  mkdir -p "$cache" 2>/dev/null || export CCACHE_DIR=$PWD/build/ccache
  NINJA_STATUS='[%f/%t %p] ' cmake --build --preset "$preset" "$@" ||
    fail "the build of preset $preset failed"
  step "$preset: built in $((SECONDS - began)) s"
}
