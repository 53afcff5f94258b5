"""A command that tries to reach what is not listed, and says of each attempt what became of it."""

import errno
import os
import socket
import struct
import subprocess
import sys

PROXY = ("127.0.0.1", 3128)


def outcome(attempt):
    try:
        return attempt()
    except OSError as error:
        return errno.errorcode.get(error.errno, str(error))


def exchange(*parts):
    """What the proxy answers to these bytes: the first line, or nothing."""
    with socket.create_connection(PROXY, 10) as proxy:
        for part in parts:
            proxy.sendall(part)
        text = b""
        while got := proxy.recv(65536):
            text += got
        return text.decode(errors="replace")


def status(head):
    return (exchange(head.replace("\n", "\r\n").encode()).split(" ") + ["", "nothing"])[1]


def socks(command, kind, address, port=80):
    with socket.create_connection(PROXY, 10) as proxy:
        proxy.sendall(b"\x05\x01\x00")
        proxy.recv(2)
        proxy.sendall(bytes([5, command, 0, kind]) + address + struct.pack(">H", port))
        return f"reply {proxy.recv(10)[1]}"


def named(name):
    return bytes([len(name)]) + name.encode()


def connect(family, address):
    with socket.socket(family, socket.SOCK_STREAM) as one:
        one.settimeout(5)
        one.connect(address)
        return "connected"


def datagram(family, kind, protocol, address):
    with socket.socket(family, kind, protocol) as one:
        one.sendto(b"\x00\x00\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x06secret\x04test\x00\x00\x01\x00\x01", address)
        return "sent"


def bound(reuse):
    with socket.socket() as one:
        if reuse:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        one.bind(PROXY)
        one.listen()
        return "bound"


def curl(*words, **environment):
    words = ["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", "--max-time", "5", *words]
    done = subprocess.run(words, capture_output=True, text=True, env={**os.environ, **environment})
    return f"{done.stdout} exit {done.returncode}"


def seen(word):
    """True if a process has this word, or a descriptor leads to another process's socket of the proxy."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if word in open(f"/proc/{pid}/cmdline").read().split("\0"):
                return "seen"
        except OSError:
            pass
    return "unseen"


ATTEMPTS = [
    ("a page of a listed host", lambda: curl("http://web.test/page")),
    ("a tunnel to a listed host", lambda: curl("--proxytunnel", "http://web.test/page")),
    ("SOCKS by a listed name", lambda: socks(1, 3, named("web.test"))),
    ("a server of its own, by localhost", lambda: own_server()),
    ("a DNS query", lambda: datagram(socket.AF_INET, socket.SOCK_DGRAM, 0, ("10.99.0.1", 53))),
    ("a raw socket", lambda: datagram(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP, ("10.99.0.1", 0))),
    ("TCP by address", lambda: connect(socket.AF_INET, ("10.99.0.1", 80))),
    ("TCP by IPv6", lambda: connect(socket.AF_INET6, ("fd99::1", 80))),
    ("an abstract socket of the machine", lambda: connect(socket.AF_UNIX, "\0town")),
    ("NO_PROXY for all", lambda: curl("http://web.test/page", NO_PROXY="*", no_proxy="*")),
    ("the proxy's own port, taken", lambda: bound(False)),
    ("the same, shared", lambda: bound(True)),
    ("an unlisted name", lambda: status("CONNECT other.test:80 HTTP/1.1\n\n")),
    ("a listed name at another port", lambda: status("CONNECT web.test:22 HTTP/1.1\n\n")),
    ("the address of a listed name", lambda: status("CONNECT 10.99.0.1:80 HTTP/1.1\n\n")),
    ("the machine's loopback", lambda: status("CONNECT 127.0.0.1:80 HTTP/1.1\n\n")),
    ("as 0x7f.1", lambda: status("CONNECT 0x7f.1:80 HTTP/1.1\n\n")),
    ("as 2130706433", lambda: status("CONNECT 2130706433:80 HTTP/1.1\n\n")),
    ("as [::ffff:127.0.0.1]", lambda: status("CONNECT [::ffff:127.0.0.1]:80 HTTP/1.1\n\n")),
    ("as localhost", lambda: status("CONNECT localhost:80 HTTP/1.1\n\n")),
    ("a listed name that leads to 127.0.0.1", lambda: status("CONNECT home.test:80 HTTP/1.1\n\n")),
    ("a listed name that leads to 169.254.169.254", lambda: status("GET http://meta.test/ HTTP/1.1\n\n")),
    ("CONNECT with another Host", lambda: status("CONNECT web.test:80 HTTP/1.1\nHost: other.test\n\n")),
    ("a page with another Host", lambda: status("GET http://web.test/ HTTP/1.1\nHost: other.test\n\n")),
    ("a page with two Hosts", lambda: status("GET http://web.test/ HTTP/1.1\nHost: web.test\nHost: other.test\n\n")),
    ("a user before the host", lambda: status("GET http://web.test@other.test/ HTTP/1.1\n\n")),
    ("a path with a Host alone", lambda: status("GET / HTTP/1.1\nHost: web.test\n\n")),
    ("two lengths", lambda: status("POST http://web.test/echo HTTP/1.1\nContent-Length: 0\nContent-Length: 40\n\n")),
    (
        "a length and chunks",
        lambda: status("POST http://web.test/echo HTTP/1.1\nContent-Length: 40\nTransfer-Encoding: chunked\n\n0\n\n"),
    ),
    ("a second request behind a length", lambda: smuggled("Content-Length: 5\n\nhello")),
    ("a second request behind chunks", lambda: smuggled("Transfer-Encoding: chunked\n\n5\nhello\n0\n\n")),
    ("a redirect to an unlisted host", lambda: curl("-L", "http://web.test/moved")),
    (
        "a WebSocket without a tunnel",
        lambda: status("GET http://web.test/page HTTP/1.1\nConnection: Upgrade\nUpgrade: websocket\n\n"),
    ),
    ("SOCKS by an unlisted name", lambda: socks(1, 3, named("other.test"))),
    ("SOCKS by address", lambda: socks(1, 1, socket.inet_aton("10.99.0.1"))),
    ("SOCKS by IPv6", lambda: socks(1, 4, socket.inet_pton(socket.AF_INET6, "::ffff:127.0.0.1"))),
    ("SOCKS, BIND", lambda: socks(2, 3, named("web.test"))),
    ("SOCKS, UDP", lambda: socks(3, 3, named("web.test"))),
    ("the proxy's process", lambda: seen("proxy")),
]


def own_server():
    with socket.create_server(("127.0.0.1", 0)) as own:
        own.listen()
        code = curl("--max-time", "1", f"http://localhost:{own.getsockname()[1]}/")
        # It is reached, and answers nothing.
        return code


def smuggled(rest):
    head = "POST http://web.test/echo HTTP/1.1\nHost: web.test\n" + rest
    second = "GET http://web.test/smuggled HTTP/1.1\nHost: other.test\n\n"
    answer = exchange((head + second).replace("\n", "\r\n").encode())
    return f"{answer.count('HTTP/1.')} answer, {answer.splitlines()[-1]}"


for what, attempt in ATTEMPTS:
    print(f"{what}: {outcome(attempt)}", flush=True)
