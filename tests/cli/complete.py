"""What a shell shows for words and a tab: complete.py SHELL, in the directory that is the working one. RECANT and the shell are in PATH. Reads
lines, each with the texts that are wanted, as JSON; prints what was shown of each, once all that is wanted has come, or nothing more comes."""
import json, os, re, select, sys, time
sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../capture/terminals"))
from terminal import Terminal

SHELLS = {
    "bash": (("bash", "--norc", "--noprofile", "-i"), "source <(recant completions bash); bind 'set bell-style none'; bind 'set page-completions off'; bind 'set completion-query-items 0'; bind 'set enable-bracketed-paste off'; bind 'set show-all-if-ambiguous on'; PS1=REA'DY> '"),
    "zsh": (("zsh", "-f", "-i"), "autoload -U compinit && compinit -u -D; source <(recant completions zsh); LISTMAX=500; unsetopt list_beep beep; zstyle ':completion:*' list-prompt ''; PS1=REA'DY> '"),
}

argv, setup = SHELLS[sys.argv[1]]
terminal = Terminal(*argv, rows=60, columns=120)
terminal.type(setup + "\n")
terminal.read(b"READY> ")


def shown(words, wanted):
    terminal.type(words + "\t")
    seen, text, end = b"", "", time.time() + 20
    while time.time() < end:
        is_all = all(part in text for part in wanted)
        # A moment longer: errors would come behind it.
        if select.select([terminal.fd], [], [], 0.2 if is_all else 0.5)[0]:
            seen += os.read(terminal.fd, 65536)
            text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]|\x1b[=>]|\x07|\r", "", seen.decode(errors="replace"))
        elif is_all:
            break
    # An empty line in place of this one.
    terminal.type("\x15\n")
    terminal.read(b"READY> ")
    return text


print(json.dumps([shown(words, wanted) for words, wanted in json.load(sys.stdin)]))
terminal.type("exit\n")
