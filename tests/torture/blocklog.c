/* A file system of a few files, each the image of a disk, that logs every write and every flush in one order:
 *
 *     blocklog IMAGES LOG MOUNTPOINT
 *
 * shows the files of the directory IMAGES at MOUNTPOINT. A loop device over such a file turns block writes into WRITE and cache
 * flushes into FSYNC. A record in LOG: kind (1 write, 2 flush), the image (its name's first byte), offset and length (64 bits
 * each, as the machine has them), then the bytes of a write. While there is a file `fail` beside IMAGES, writes and flushes
 * fail with EIO, and nothing of them reaches an image. */
#define FUSE_USE_VERSION 31
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fuse.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

static int images, record;

static const char *below(const char *path) { return path[1] ? path + 1 : "."; }

static int broken(void) { return faccessat(images, "../fail", F_OK, 0) == 0; }

static int note(uint8_t kind, const char *path, uint64_t offset, uint64_t length, const void *bytes) {
    uint8_t head[18] = {kind, (uint8_t)path[1]};
    memcpy(head + 2, &offset, 8);
    memcpy(head + 10, &length, 8);
    struct iovec parts[] = {{head, sizeof head}, {(void *)bytes, kind == 1 ? length : 0}};
    ssize_t wanted = (ssize_t)(sizeof head + parts[1].iov_len);
    return writev(record, parts, 2) == wanted ? 0 : -EIO;
}

static int get_attributes(const char *path, struct stat *stat, struct fuse_file_info *file) {
    (void)file;
    return fstatat(images, below(path), stat, AT_SYMLINK_NOFOLLOW) ? -errno : 0;
}

static int list(const char *path, void *buffer, fuse_fill_dir_t add, off_t offset, struct fuse_file_info *file,
                enum fuse_readdir_flags flags) {
    (void)path, (void)offset, (void)file, (void)flags;
    DIR *dir = fdopendir(dup(images));
    if (!dir) return -errno;
    rewinddir(dir);
    for (struct dirent *entry; (entry = readdir(dir));) add(buffer, entry->d_name, NULL, 0, 0);
    closedir(dir);
    return 0;
}

static int open_image(const char *path, struct fuse_file_info *file) {
    int fd = openat(images, below(path), O_RDWR | O_CLOEXEC);
    if (fd < 0) return -errno;
    file->fh = (uint64_t)fd;
    return 0;
}

static int read_image(const char *path, char *buffer, size_t size, off_t offset, struct fuse_file_info *file) {
    (void)path;
    ssize_t got = pread((int)file->fh, buffer, size, offset);
    return got < 0 ? -errno : (int)got;
}

static int write_image(const char *path, const char *bytes, size_t size, off_t offset, struct fuse_file_info *file) {
    if (broken() || note(1, path, (uint64_t)offset, size, bytes)) return -EIO;
    ssize_t put = pwrite((int)file->fh, bytes, size, offset);
    return put < 0 ? -errno : (int)put;
}

static int flush_image(const char *path, int data_only, struct fuse_file_info *file) {
    (void)data_only, (void)file;
    return broken() ? -EIO : note(2, path, 0, 0, NULL);
}

static int close_image(const char *path, struct fuse_file_info *file) {
    (void)path;
    close((int)file->fh);
    return 0;
}

static const struct fuse_operations operations = {
    .getattr = get_attributes, .readdir = list,       .open = open_image,     .read = read_image,
    .write = write_image,      .fsync = flush_image,  .release = close_image,
};

int main(int argc, char **argv) {
    if (argc != 4) return fprintf(stderr, "blocklog IMAGES LOG MOUNTPOINT\n"), 2;
    images = open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    record = open(argv[2], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (images < 0 || record < 0) return perror("blocklog"), 1;
    char *arguments[] = {argv[0], "-f", "-s", argv[3], NULL};
    return fuse_main(4, arguments, &operations, NULL);
}
