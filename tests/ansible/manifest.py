"""Prints a line for each path of a machine: all that recant promises to bring back. Not the store, the logins, and what is the kernel's."""
import hashlib
import os
import stat

LEFT_OUT = {b"/proc", b"/sys", b"/dev", b"/run", b"/usr/share", b"/usr/lib", b"/usr/bin", b"/usr/include", b"/usr/libexec", b"/usr/src",
            b"/root/.local", b"/var/log/lastlog", b"/var/log/wtmp"}


def lines(directory):
    for name in sorted(os.listdir(directory)):
        path = os.path.join(directory, name)
        if path in LEFT_OUT:
            continue
        found = os.lstat(path)
        content = b""
        if stat.S_ISREG(found.st_mode):
            with open(path, "rb") as file:
                content = hashlib.sha256(file.read()).hexdigest().encode()
        elif stat.S_ISLNK(found.st_mode):
            content = os.readlink(path)
        extended = [(key, os.getxattr(path, key, follow_symlinks=False)) for key in sorted(os.listxattr(path, follow_symlinks=False))]
        # The store lies in /root.
        times = () if path == b"/root" else (found.st_nlink, found.st_mtime_ns)
        yield repr((path, oct(found.st_mode), found.st_uid, found.st_gid, content, extended, *times))
        if stat.S_ISDIR(found.st_mode):
            yield from lines(path)


for line in lines(b"/"):
    print(line)
