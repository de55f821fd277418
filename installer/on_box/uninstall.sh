# Removes everything the installer put there; with purge=yes also the index and the policy. Prints "removed PATH" for each
# path that is gone and "left PATH" for each that is not. Transcripts are never touched.
HOME=${HOME:-$(cd 2>/dev/null && pwd)}
folder=$HOME/.local/share/session-relay
state=$HOME/.local/state
config=$HOME/.config
case ${XDG_STATE_HOME:-} in /*) state=$XDG_STATE_HOME ;; esac
case ${XDG_CONFIG_HOME:-} in /*) config=$XDG_CONFIG_HOME ;; esac

made=
if [ -r "$folder/relay" ]; then
    while IFS= read -r line; do
        case $line in '# made: '*) made=${line#'# made: '} ;; esac
    done <"$folder/relay"
fi

# The desktop's own list of hosts may lie beside the policy.
ours() {
    [ ! -d "$folder" ] || find "$folder" -print
    if [ "$purge" = yes ]; then
        [ ! -d "$state/session-relay" ] || find "$state/session-relay" -print
        [ ! -d "$config/session-relay" ] || find "$config/session-relay" ! -name 'hosts.json*' ! -path "$config/session-relay" -print
    fi
}

if [ "$purge" = yes ] && [ -r "$folder/relay" ]; then
    # Agents that run at this moment see it within a second and let go of the index.
    /bin/sh "$folder/relay" disable --clear </dev/null >/dev/null 2>&1
fi
before=$(ours)
rm -rf "$folder"
if [ "$purge" = yes ]; then
    rm -rf "$state/session-relay"
    [ ! -d "$config/session-relay" ] ||
        find "$config/session-relay" -mindepth 1 -maxdepth 1 ! -name 'hosts.json*' -exec rm -rf {} +
    rmdir "$config/session-relay" 2>/dev/null
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
