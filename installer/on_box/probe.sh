# Finds, in plain POSIX sh, a Python that can run the agent, and what the account's home allows. Changes nothing.
# Prints lines "name value"; no here-documents, which some shells keep in a /tmp that may be full.
folder=.local/share/session-relay

say() { printf '%s\n' "$1 $2"; }

say system "$(uname -s -m 2>/dev/null)"
say shell "${SHELL:-unknown}"
say home "${HOME-}"

check='import os, sys
version = "%d.%d.%d" % sys.version_info[:3]
def verdict():
    if sys.version_info < (3, 9):
        return "old"
    if sys.implementation.name != "cpython":
        return "not-cpython"
    try:
        import sqlite3
        if sqlite3.sqlite_version_info < (3, 31):
            return "old-sqlite"
        sqlite3.connect(":memory:").execute("create virtual table t using fts5(x)")
    except ImportError:
        return "no-sqlite"
    except Exception:
        return "no-fts5"
    return "usable"
executable = sys.executable
if sys.prefix != sys.base_prefix:
    behind = os.path.join(sys.base_prefix, "bin", "python%d.%d" % sys.version_info[:2])
    executable = behind if os.access(behind, os.X_OK) else executable
print(verdict() + " " + version + " " + executable)'

# A program that hangs, or prints without end, costs ten seconds and 4 kB. Old timeouts know no such call.
limit='timeout -s KILL 10'
$limit true 2>/dev/null || limit=
asked() { $limit "$@" </dev/null 2>/dev/null | head -c 4096; }

# A Python of a virtual environment answers with the one it was made from, which outlives it.
try() {
    [ -n "$1" ] && [ -f "$1" ] && [ -x "$1" ] || return 1
    case " $tried " in *" $1 "*) return 1 ;; esac
    tried="$tried $1"
    answer=$(asked "$1" -I -c "$check")
    case $answer in
    usable\ *) say python "$answer" && return 0 ;;
    ?*) say refused "$1 $answer" ;;
    *) say refused "$1 broken $(asked "$1" -c 'import sys; print("%d.%d.%d" % sys.version_info[:3])')" ;;
    esac
    return 1
}

# macOS answers a call of its bare /usr/bin/python3 with a dialogue unless the developer tools are there.
system_python() {
    [ "$(uname -s)" != Darwin ] || xcode-select -p >/dev/null 2>&1 || return 0
    printf '%s' /usr/bin/python3
}

find_python() {
    known=
    if [ -f "$HOME/$folder/relay" ] && [ -r "$HOME/$folder/relay" ]; then
        while IFS= read -r line; do
            case $line in '# python: '*) known=${line#'# python: '} ;; esac
        done <"$HOME/$folder/relay"
        say launcher "$HOME/$folder/relay"
    fi
    tried=
    try "$known" && return
    first=$(command -v python3 2>/dev/null)
    [ "$first" != /usr/bin/python3 ] || first=$(system_python)
    try "$first" && return
    try "$(system_python)" && return
    for minor in 13 12 11 10 9 14; do
        try "$(command -v python3.$minor 2>/dev/null)" && return
    done
    for path in /usr/local/bin/python3 /usr/bin/python3.* /usr/local/bin/python3.* "$HOME"/.local/bin/python3* \
        "${PYENV_ROOT:-$HOME/.pyenv}"/versions/*/bin/python3 "$HOME"/*conda*/bin/python3 "$HOME"/*forge*/bin/python3 \
        "$HOME"/.local/share/uv/python/*/bin/python3 "$HOME"/.asdf/installs/python/*/bin/python3 \
        "$HOME"/.local/share/mise/installs/python/*/bin/python3 "$HOME"/.nix-profile/bin/python3 \
        /run/current-system/sw/bin/python3 /opt/homebrew/bin/python3 /home/linuxbrew/.linuxbrew/bin/python3 \
        /opt/*/bin/python3 /opt/python/*/bin/python3 /usr/local/*/bin/python3 \
        /Library/Frameworks/Python.framework/Versions/3.*/bin/python3; do
        case $path in *-config | *t) continue ;; esac
        try "$path" && return
    done
    return 0
}
# What the login shell makes of ~ is HOME, so that without a good one nothing would be found again where it was put.
home=
case ${HOME-} in /*) home=$(cd -P "$HOME" 2>/dev/null && pwd -P || printf '%s' "$HOME") ;; esac
case $home in
'' | / | //) say home-unusable "${HOME-}" ;;
*)
    find_python
    nearest=$HOME/$folder
    while [ -n "$nearest" ] && [ ! -d "$nearest" ]; do nearest=${nearest%/*}; done
    nearest=${nearest:-/}
    say nearest "$nearest"
    [ -d "$HOME" ] || say home-missing "$HOME"

    mark=$nearest/.session-relay-probe.$$
    trap 'rm -f "$mark"' 0 1 2 15
    if complaint=$( (printf '#!/bin/sh\nexit 0\n' >"$mark") 2>&1); then
        say writable yes
        chmod 700 "$mark"
        "$mark" >/dev/null 2>&1 </dev/null
        [ $? -ne 126 ] || say noexec yes
    else
        say unwritable "$complaint"
    fi
    rm -f "$mark"
    space=$(df -Pk "$nearest" 2>/dev/null | { read -r line && read -r device blocks used free rest && printf '%s' "$free"; })
    [ -z "$space" ] || say free-kilobytes "$space"
    ;;
esac
