# Sourced by the other scripts. Makes the environment of a lock file, once, and sets PYTHON; finds Java for
# Spark.
#
#   make_env LOCKFILE DIRECTORY
#   find_java                        after make_env; sets JAVA_HOME
#
# The directory is made again if the lock file, pyproject.toml or the version has changed, or the clone was moved.
# Needs Python 3.11 or newer with the venv module, and a package index that pip can reach; prints an error if
# one of them is missing.

fail() {
    echo "${0##*/}: $*" >&2
    exit 1
}

find_python() {
    local candidate
    for candidate in "${REWINDMQ_PYTHON:-}" python3 python3.14 python3.13 python3.12 python3.11; do
        [ -n "$candidate" ] || continue
        command -v "$candidate" >/dev/null 2>&1 || continue
        "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || continue
        echo "$candidate"
        return
    done
    fail "needs Python 3.11 or newer on the PATH (Debian, Ubuntu: apt-get install python3 python3-venv)," \
        "or its path in REWINDMQ_PYTHON"
}

make_env() {
    local lock=$1 directory=$2 python stamp
    # A process that loads compiled modules starts in half the time, and tests start hundreds.
    unset PYTHONDONTWRITEBYTECODE
    python=$(find_python) || exit 1
    stamp=$(cat "$lock" pyproject.toml src/rewindmq/__init__.py | "$python" -c \
        'import hashlib, os, sys; print(os.getcwd(), sys.version, hashlib.sha256(sys.stdin.buffer.read()).hexdigest())')
    PYTHON=$PWD/$directory/bin/python
    if [ -x "$PYTHON" ] && [ "$(cat "$directory/.stamp" 2>/dev/null)" = "$stamp" ]; then
        return
    fi
    echo "${0##*/}: making $directory from $lock" >&2
    "$python" -c 'import venv, ensurepip' 2>/dev/null ||
        fail "Python's venv module is missing (Debian, Ubuntu: apt-get install python3-venv)"
    rm -rf "$directory"
    "$python" -m venv "$directory" || fail "could not make a virtual environment in $directory"
    "$PYTHON" -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r "$lock" ||
        fail "could not install $lock: is a package index reachable? (see pip's message above)"
    "$PYTHON" -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e . ||
        fail "could not install the project itself (see pip's message above)"
    echo "$stamp" >"$directory/.stamp"
}

# If Java is missing and cannot be installed, JAVA_HOME stays unset: the tests that need it are listed
# as not run.
find_java() {
    if ! JAVA_HOME=$("$PYTHON" -m rewindmq.pipeline.spark.java 2>/dev/null); then
        unset JAVA_HOME
        install_java || return 0
        JAVA_HOME=$("$PYTHON" -m rewindmq.pipeline.spark.java) || { unset JAVA_HOME && return 0; }
    fi
    export JAVA_HOME
}

# Installs Java if this user can do so without a password: on Debian and derivatives, as root or with sudo.
install_java() {
    local package sudo=()
    command -v apt-get >/dev/null 2>&1 || return 1
    if [ "$(id -u)" != 0 ]; then
        sudo -n true 2>/dev/null || return 1
        sudo=(sudo -n)
    fi
    ${sudo[@]+"${sudo[@]}"} apt-get update -qq >&2 || true
    for package in openjdk-17-jre-headless openjdk-21-jre-headless default-jre-headless; do
        echo "${0##*/}: no Java 17 or newer; apt-get install $package" >&2
        ${sudo[@]+"${sudo[@]}"} env DEBIAN_FRONTEND=noninteractive \
            apt-get install -y -qq --no-install-recommends "$package" >&2 && return
    done
    return 1
}
