# Finding a Python and making an environment; read with `.` by the scripts beside it.

supported='import sys; sys.exit(not ((3, 9) <= sys.version_info[:2] <= (3, 13)))'

# Prints the Python to use: $PYTHON, else the first supported one on the PATH.
find_python() {
    for candidate in ${PYTHON:-python3 python3.13 python3.12 python3.11 python3.10 python3.9}; do
        if command -v "$candidate" >/dev/null 2>&1 && "$candidate" -c "$supported" 2>/dev/null; then
            command -v "$candidate"
            return 0
        fi
    done
    echo "No Python 3.9 to 3.13 was found. Install one (Debian: apt-get install python3 python3-venv; macOS: brew install python@3.13)" >&2
    echo "or name it: PYTHON=/path/to/python3 $0" >&2
    return 1
}

# make_environment PYTHON FOLDER: a virtual environment; on Debian its pip may first have to be installed.
make_environment() {
    echo "Making a virtual environment in $2 with $("$1" --version) …" >&2
    if "$1" -m venv "$2" >/dev/null 2>&1 && "$2/bin/python" -m pip --version >/dev/null 2>&1; then
        return 0
    fi
    rm -rf "$2"
    version=$("$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    if may_install; then
        install_packages "python$version-venv" || install_packages python3-venv || true
        "$1" -m venv "$2" && return 0
        rm -rf "$2"
    fi
    echo "This Python cannot make virtual environments. On Debian or Ubuntu: apt-get install python3-venv" >&2
    return 1
}

# Whether packages may be installed without asking anybody: Debian's package manager, as root or with a sudo that needs no password.
may_install() {
    command -v apt-get >/dev/null 2>&1 && { [ "$(id -u)" = 0 ] || sudo -n true 2>/dev/null; }
}

# install_packages NAME…: through apt, without starting any service that comes with them.
install_packages() {
    as_root=''
    [ "$(id -u)" = 0 ] || as_root='sudo -n'
    echo "Installing $* …" >&2
    policy=/usr/sbin/policy-rc.d
    ours=''
    if [ ! -e "$policy" ]; then
        ours=yes
        printf '#!/bin/sh\nexit 101\n' | $as_root sh -c "cat > $policy && chmod 755 $policy"
    fi
    status=0
    { $as_root apt-get update -qq && $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@"; } >/dev/null 2>&1 || status=$?
    [ -z "$ours" ] || $as_root rm -f "$policy"
    return $status
}
