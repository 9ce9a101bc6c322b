# larderctl(1) completion for fish: larderctl completion fish | source
function __larderctl_complete
    set -l typed (commandline -opc) (commandline -ct)
    set -l lines (command $typed[1] completion -- $typed[2..-1] 2>/dev/null)
    if test "$lines[1]" = :files
        __fish_complete_path (commandline -ct)
        return
    end
    printf '%s\n' $lines
end
complete -c larderctl -f -a '(__larderctl_complete)'
