#!/usr/bin/env python3
"""Stands between a client and a server on stdio, and writes each line down: `tap.py LOG COMMAND…`. A line of LOG is a list: ">" or "<", text."""
import json
import subprocess
import sys
import threading


def copy(source, to, sign, log, lock):
    for line in source:
        with lock:
            log.write(json.dumps([sign, line.decode(errors="replace")]) + "\n")
            log.flush()
        try:
            to.write(line)
            to.flush()
        except BrokenPipeError:
            return
    try:
        to.close()
    except BrokenPipeError:
        pass


def main():
    server = subprocess.Popen(sys.argv[2:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    lock = threading.Lock()
    with open(sys.argv[1], "a", encoding="utf-8") as log:
        threading.Thread(target=copy, args=(sys.stdin.buffer, server.stdin, ">", log, lock), daemon=True).start()
        copy(server.stdout, sys.stdout.buffer, "<", log, lock)
        sys.exit(server.wait())


if __name__ == "__main__":
    main()
