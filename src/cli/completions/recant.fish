# Completion of recant for fish, which asks recant itself.
function __recant_complete
    set -l words (commandline --current-process --tokenize --cut-at-cursor)
    set -l word (commandline --current-token --cut-at-cursor)
    set -l offers (command recant complete fish (count $words) -- $words "$word" 2>/dev/null)
    set -l before (string match --regex -- '^--[^=]*=' $word)
    set -l rest (string replace -- "$before" '' "$word")
    switch "$offers[1]"
        case 'command *'
            set -l first (math (string replace 'command ' '' -- $offers[1]) + 1)
            complete --do-complete (string join ' ' -- (string escape -- $words[$first..-1]) "$word")
        case files
            printf "$before%s\n" (__fish_complete_path $rest)
        case directories
            printf "$before%s\n" (__fish_complete_directories $rest '')
        case '*'
            printf '%s\n' $offers[2..-1]
    end
end
complete --command recant --erase
complete --command recant --exclusive --keep-order --arguments '(__recant_complete)'
