# Removes everything the installer put there; with purge=yes also the index and the policy. Prints "removed PATH" for each
# path that is gone, "left PATH" for each of ours that is not, and "kept PATH" for what lies in our folder and is not ours.
# Transcripts are never touched.
HOME=${HOME:-$(cd 2>/dev/null && pwd)}
folder=$HOME/.local/share/session-relay
state=$HOME/.local/state
config=$HOME/.config
case ${XDG_STATE_HOME:-} in /*) state=$XDG_STATE_HOME ;; esac
case ${XDG_CONFIG_HOME:-} in /*) config=$XDG_CONFIG_HOME ;; esac

launcher=no
made=
if [ -f "$folder/relay" ] && [ -r "$folder/relay" ]; then
    while IFS= read -r line; do
        case $line in
        '# The launcher of session-relay'*) launcher=yes ;;
        '# made: '*) made=${line#'# made: '} ;;
        esac
    done <"$folder/relay"
fi

# The same names as in installer/on_box/layout.py.
x='[0-9a-f]'
x=$x$x$x$x
each_part() {
    for part in "$folder/relay" "$folder"/incoming-$x$x$x$x "$folder"/versions/*-$x$x$x "$folder"/versions/*-$x$x$x.[0-9]*; do
        if [ "$part" = "$folder/relay" ]; then
            if [ -f "$part" ] || [ -L "$part" ]; then "$@" "$part"; fi
        elif [ -d "$part" ] && [ ! -L "$part" ]; then
            "$@" "$part"
        fi
    done
}

# A folder of the agent's with all that is in it. Where a link leads to it, the link is somebody else's.
whole() {
    [ -d "$1" ] || return 0
    [ -L "$1" ] || printf '%s\n' "$1"
    find -H "$1" -mindepth 1 -print
}

# The desktop's own list of hosts may lie beside the policy.
ours() {
    each_part whole_part
    if [ "$purge" = yes ]; then
        whole "$state/session-relay"
        [ ! -d "$config/session-relay" ] || find -H "$config/session-relay" -mindepth 1 ! -name 'hosts.json*' -print
    fi
}
whole_part() { find "$1" -print; }

if [ "$purge" = yes ] && [ "$launcher" = yes ]; then
    # Agents that run at this moment see it within a second and let go of the index.
    /bin/sh "$folder/relay" disable --clear </dev/null >/dev/null 2>&1
fi
before=$(ours)
each_part rm -rf
for path in "$folder/versions" "$folder"; do
    if [ -d "$path" ] && [ ! -L "$path" ]; then
        if rmdir "$path" 2>/dev/null; then
            printf 'removed %s\n' "$path"
        elif [ -z "$(ls -A "$path")" ]; then
            printf 'left %s\n' "$path"
        fi
    fi
done
if [ "$purge" = yes ]; then
    for path in "$state/session-relay" "$config/session-relay"; do
        [ ! -d "$path" ] || find -H "$path" -mindepth 1 -maxdepth 1 ! -name 'hosts.json*' -exec rm -rf {} +
        [ -L "$path" ] || rmdir "$path" 2>/dev/null
    done
fi
backwards=
for path in $made; do backwards="$path $backwards"; done  # what lies deeper goes first
for path in $backwards; do
    [ "$path" = .local/share/session-relay ] || rmdir "$HOME/$path" 2>/dev/null
done
printf '%s\n' "$before" | while IFS= read -r path; do
    [ -n "$path" ] || continue
    if [ -e "$path" ] || [ -L "$path" ]; then printf 'left %s\n' "$path"; else printf 'removed %s\n' "$path"; fi
done
ours | while IFS= read -r path; do printf 'left %s\n' "$path"; done
if [ -d "$folder" ]; then
    find -H "$folder" -mindepth 1 ! -path "$folder/versions" -print | while IFS= read -r path; do printf 'kept %s\n' "$path"; done
elif [ -e "$folder" ] || [ -L "$folder" ]; then
    printf 'kept %s\n' "$folder"
fi
