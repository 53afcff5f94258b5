"""What a shell shows for words and a tab: complete.py SHELL WORDS, in the directory that is the working one. RECANT and the shell are in PATH."""
import select, os, re, sys, time
from terminal import Terminal

SHELLS = {
    "bash": (("bash", "--norc", "--noprofile", "-i"), "source <(recant completions bash); bind 'set bell-style none'; bind 'set page-completions off'; bind 'set completion-query-items 0'; bind 'set enable-bracketed-paste off'; bind 'set show-all-if-ambiguous on'; PS1=REA'DY> '"),
    "zsh": (("zsh", "-f", "-i"), "autoload -U compinit && compinit -u -D; source <(recant completions zsh); LISTMAX=500; unsetopt list_beep beep; zstyle ':completion:*' list-prompt ''; PS1=REA'DY> '"),
}

shell, words = sys.argv[1:]
argv, setup = SHELLS[shell]
terminal = Terminal(*argv, rows=60, columns=120)
terminal.type(setup + "\n")
terminal.read(b"READY> ")
terminal.type(words + "\t")
seen, end = b"", time.time() + 20
last = time.time()
# What comes to rest is all there is: a second tab lists what one alone has not.
while time.time() < end and time.time() - last < 1.5:
    if select.select([terminal.fd], [], [], 0.1)[0]:
        data = os.read(terminal.fd, 65536)
        if data.strip(b"\x07"):
            last = time.time()
        seen += data
print(re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]|\x1b[=>]|\x07|\r", "", seen.decode(errors="replace")))
terminal.type("\x03\x15exit\n")
