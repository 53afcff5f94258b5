# Completion of recant for bash, which asks recant itself.
_recant() {
    local word kind i n=0
    local -a words=() at=() offers=()
    # bash ends words at '=' and ':'; recant wants them whole.
    for ((i = 0; i <= COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        if ((n > 1)) && [[ $word == [=:]* || ${COMP_WORDS[i - 1]} == *[=:] ]]; then
            words[n - 1]+=$word
        else
            words[n]=$word
            at[n++]=$i
        fi
    done
    word=${words[n - 1]}
    mapfile -t offers < <(command recant complete bash "$((n - 1))" -- "${words[@]}" 2>/dev/null)
    kind=${offers[0]-}
    COMPREPLY=()
    case $kind in
    command*)
        i=${at[${kind#command }]}
        if declare -F _comp_command_offset >/dev/null; then
            _comp_command_offset "$i"
        elif declare -F _command_offset >/dev/null; then
            _command_offset "$i"
        elif ((i == COMP_CWORD)); then
            compopt -o filenames
            mapfile -t COMPREPLY < <(compgen -A command -A directory -- "$2")
        else
            compopt -o default
        fi
        ;;
    files) compopt -o default ;;
    directories)
        compopt -o filenames
        mapfile -t COMPREPLY < <(compgen -A directory -- "$2")
        ;;
    *)
        # What stands before the last '=' or ':' is no part of the word that bash replaces.
        COMPREPLY=("${offers[@]:1}")
        COMPREPLY=("${COMPREPLY[@]%%$'\t'*}")
        COMPREPLY=("${COMPREPLY[@]#"${word%"$2"}"}")
        # bash leaves '$' and '`' as they are in names that are not on the disk, and would expand them.
        if [[ ${COMPREPLY[*]} == *[\$\`]* ]]; then
            mapfile -t COMPREPLY < <(printf '%q\n' "${COMPREPLY[@]}")
        elif [[ $kind == paths ]]; then
            compopt -o filenames
        fi
        [[ ${#COMPREPLY[@]} != 1 || ${COMPREPLY[0]} != *[/=] ]] || compopt -o nospace
        ;;
    esac
}
complete -o nosort -F _recant recant 2>/dev/null || complete -F _recant recant
