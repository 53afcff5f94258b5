"""Sockets and FIFOs of processes outside, of which some are in no list by their names, asked from inside a run. Outside (arguments: a directory in /run, one elsewhere,
the words of a run) they are served, then some are bound anew while the run goes on. Prints what was reached, then `tried all`. Runs in a mount namespace of its own."""
import ctypes, os, select, socket, subprocess, sys, threading

libc = ctypes.CDLL(None, use_errno=True)
NEW_NETWORK = 0x40000000


def serve(name, move=None):
    """Listens at a name, that is changed afterwards where a path is given for it."""
    server = socket.socket(socket.AF_UNIX)
    server.bind(name)
    server.listen()
    if move:
        move(name)

    def answer():
        while True:
            client, _ = server.accept()
            reached.append(name)
            client.sendall(b"hello")

    threading.Thread(target=answer, daemon=True).start()


def relative(directory):
    os.chdir(directory)
    serve("relative")
    os.chdir("/")


def in_other_network(name):
    ready, told = os.pipe()
    if os.fork():
        assert os.read(ready, 1)
        return
    # It ends with this process.
    assert libc.prctl(1, 9) == 0 and libc.unshare(NEW_NETWORK) == 0
    server = socket.socket(socket.AF_UNIX)
    server.bind(name)
    server.listen()
    os.write(told, b"x")
    # Nobody answers, but a client is let in.
    threading.Event().wait()


def fifo(name):
    os.mkfifo(name)
    fifos.append((name, os.open(name, os.O_RDONLY | os.O_NONBLOCK)))


def rename(name):
    os.rename(name, name.replace("before", "renamed"))


def hard_link(name):
    os.link(name, name.replace("before", "linked"))
    os.unlink(name)


def outside(run, other, words):
    os.umask(0)
    for directory in (run, other):
        os.mkdir(directory + "/deep")
        serve(directory + "/before-1", rename)
        # As ssh makes the socket of a ControlMaster.
        serve(directory + "/before-2", hard_link)
        relative(directory)
        in_other_network(directory + "/network")
        serve(directory + "/listed")
        serve(directory + "/deep/listed")
        fifo(directory + "/fifo")
    os.mkdir(run + "/mounted")
    subprocess.run(["mount", "-t", "tmpfs", "recant-test", run + "/mounted"], check=True)
    relative(run + "/mounted")
    os.mkdir(run + "/bound")
    subprocess.run(["mount", "--bind", other, run + "/bound"], check=True)
    serve(run + ".sock")
    fifo(run + ".fifo")
    child = subprocess.Popen(words + ["/usr/bin/python3", __file__, "inside", run, other], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    for line in child.stdout:
        print(line, end="")
        if line == "again\n":
            for name in (run + ".sock", run + "/listed", other + "/listed"):
                os.unlink(name)
                serve(name)
            for directory in (run, other, run + "/mounted"):
                serve(directory + "/anew")
                fifo(directory + "/anew-fifo")
            child.stdin.write("go\n")
            child.stdin.flush()
    assert child.wait() == 0
    for name, reader in fifos:
        if select.select([reader], [], [], 0)[0] and os.read(reader, 9):
            print("REACHED", name)
    for name in reached:
        print("REACHED", name)
    for name in (run + ".sock", run + ".fifo"):
        os.unlink(name)
    print("tried all")
    sys.stdout.flush()
    os._exit(0)


def inside(run, other):
    for again in (False, True):
        for directory in (run, other, run + "/mounted", run + "/bound"):
            for at, directories, files in os.walk(directory):
                for name in files:
                    ask(os.path.join(at, name))
        for name in (run + ".sock", run + ".fifo", *(f"{d}/{n}" for d in (run, other, run + "/mounted") for n in ("anew", "anew-fifo"))):
            ask(name)
        if not again:
            print("again", flush=True)
            input()


def ask(name):
    asked.add(name)
    client = socket.socket(socket.AF_UNIX)
    client.settimeout(1)
    try:
        client.connect(name)
        print("CONNECTED", name, flush=True)
    except OSError:
        pass
    try:
        pipe = os.open(name, os.O_WRONLY | os.O_NONBLOCK)
        os.write(pipe, b"pwned")
        print("WRITTEN", name, flush=True)
    except OSError:
        pass


reached, fifos, asked = [], [], set()
if sys.argv[1] == "inside":
    inside(*sys.argv[2:])
    print("asked", len(asked), flush=True)
else:
    outside(sys.argv[1], sys.argv[2], sys.argv[3:])
