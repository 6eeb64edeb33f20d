/* Preloaded: counts the file-system calls below one folder, notes them, and lets one of them fail.
 *
 *   arm(folder, number, error, log)   error 0: only note; -1: a write takes half, and the next one has no space left
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static char folder[PATH_MAX];
static size_t length;
static int number, fails_with, log_to = -1, armed;
static atomic_int calls, full;

void arm(const char *root, int which, int error, const char *log)
{
    snprintf(folder, sizeof folder, "%s/", root);
    length = strlen(folder);
    number = which;
    fails_with = error;
    log_to = syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600);
    armed = 1;
}

static int path_of(int fd, char *path)
{
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    long size = syscall(SYS_readlinkat, AT_FDCWD, link, path, PATH_MAX - 1);
    path[size < 0 ? 0 : size] = 0;
    return size > 0;
}

/* Whether this call is to fail; errno says how. */
static int hit(const char *name, int fd, const char *relative)
{
    if (!armed || (relative == NULL && fd < 3))
        return 0;
    char path[2 * PATH_MAX] = "";
    if (relative != NULL && relative[0] == '/')
        snprintf(path, sizeof path, "%s", relative);
    else {
        if (fd == AT_FDCWD) {
            if (syscall(SYS_getcwd, path, PATH_MAX) < 0)
                return 0;
        } else if (!path_of(fd, path))
            return 0;
        if (relative != NULL)
            snprintf(path + strlen(path), PATH_MAX, "/%s", strncmp(relative, "./", 2) ? relative : relative + 2);
    }
    if (strncmp(path, folder, length))
        return 0;
    int call = atomic_fetch_add(&calls, 1) + 1;
    char line[2 * PATH_MAX + 64];
    int size = snprintf(line, sizeof line, "%s %s\n", name, path + length);
    syscall(SYS_write, log_to, line, size);
    if (call != number || fails_with <= 0)
        return 0;
    errno = fails_with;
    return 1;
}

/* How much of a write is taken. */
static size_t taken(const char *name, int fd, size_t size)
{
    int before = calls;
    if (hit(name, fd, NULL))
        return (size_t)-1;
    if (fails_with == -1 && calls > before) {
        if (calls == number) {
            full = 1;
            return size / 2;
        }
        if (full) {
            full = 0;
            errno = ENOSPC;
            return (size_t)-1;
        }
    }
    return size;
}

#define REAL(name) static __typeof__(name) *real; if (!real) real = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)
#define BY_PATH(type, failed, name, parameters, arguments, dir, path) \
    type name parameters { REAL(name); return hit(#name, dir, path) ? failed : real arguments; }
#define BY_FD(type, failed, name, parameters, arguments, fd) \
    type name parameters { REAL(name); return hit(#name, fd, NULL) ? failed : real arguments; }
#define OPENS(name) \
    int name(const char *path, int flags, ...) { \
        REAL(name); va_list rest; va_start(rest, flags); int mode = va_arg(rest, int); va_end(rest); \
        return hit(flags & O_CREAT ? #name " w" : #name, AT_FDCWD, path) ? -1 : real(path, flags, mode); }
#define OPENS_AT(name) \
    int name(int dir, const char *path, int flags, ...) { \
        REAL(name); va_list rest; va_start(rest, flags); int mode = va_arg(rest, int); va_end(rest); \
        return hit(#name, dir, path) ? -1 : real(dir, path, flags, mode); }
#define WRITES(name, parameters, arguments, fd, size) \
    ssize_t name parameters { REAL(name); size_t whole = size; size = taken(#name, fd, size); \
        (void)whole; return size == (size_t)-1 ? -1 : real arguments; }

OPENS(open)
OPENS(open64)
OPENS_AT(openat)
OPENS_AT(openat64)
BY_PATH(FILE *, NULL, fopen, (const char *p, const char *m), (p, m), AT_FDCWD, p)
BY_PATH(FILE *, NULL, fopen64, (const char *p, const char *m), (p, m), AT_FDCWD, p)
BY_PATH(DIR *, NULL, opendir, (const char *p), (p), AT_FDCWD, p)
BY_PATH(int, -1, mkdir, (const char *p, mode_t m), (p, m), AT_FDCWD, p)
BY_PATH(int, -1, mkdirat, (int d, const char *p, mode_t m), (d, p, m), d, p)
BY_PATH(int, -1, rmdir, (const char *p), (p), AT_FDCWD, p)
BY_PATH(int, -1, unlink, (const char *p), (p), AT_FDCWD, p)
BY_PATH(int, -1, unlinkat, (int d, const char *p, int f), (d, p, f), d, p)
BY_PATH(int, -1, rename, (const char *p, const char *q), (p, q), AT_FDCWD, q)
BY_PATH(int, -1, renameat, (int d, const char *p, int e, const char *q), (d, p, e, q), e, q)
BY_PATH(int, -1, link, (const char *p, const char *q), (p, q), AT_FDCWD, q)
BY_PATH(int, -1, linkat, (int d, const char *p, int e, const char *q, int f), (d, p, e, q, f), e, q)
BY_PATH(int, -1, chmod, (const char *p, mode_t m), (p, m), AT_FDCWD, p)
BY_PATH(int, -1, fchmodat, (int d, const char *p, mode_t m, int f), (d, p, m, f), d, p)
BY_PATH(int, -1, access, (const char *p, int m), (p, m), AT_FDCWD, p)
BY_PATH(int, -1, faccessat, (int d, const char *p, int m, int f), (d, p, m, f), d, p)
BY_PATH(int, -1, stat, (const char *p, struct stat *s), (p, s), AT_FDCWD, p)
BY_PATH(int, -1, stat64, (const char *p, struct stat64 *s), (p, s), AT_FDCWD, p)
BY_PATH(int, -1, lstat, (const char *p, struct stat *s), (p, s), AT_FDCWD, p)
BY_PATH(int, -1, lstat64, (const char *p, struct stat64 *s), (p, s), AT_FDCWD, p)
BY_PATH(int, -1, fstatat, (int d, const char *p, struct stat *s, int f), (d, p, s, f), d, p)
BY_PATH(int, -1, fstatat64, (int d, const char *p, struct stat64 *s, int f), (d, p, s, f), d, p)
BY_PATH(int, -1, statvfs64, (const char *p, struct statvfs64 *s), (p, s), AT_FDCWD, p)
BY_PATH(ssize_t, -1, readlink, (const char *p, char *b, size_t n), (p, b, n), AT_FDCWD, p)
BY_FD(ssize_t, -1, read, (int d, void *b, size_t n), (d, b, n), d)
BY_FD(ssize_t, -1, pread, (int d, void *b, size_t n, off_t o), (d, b, n, o), d)
BY_FD(ssize_t, -1, pread64, (int d, void *b, size_t n, off64_t o), (d, b, n, o), d)
BY_FD(int, -1, fsync, (int d), (d), d)
BY_FD(int, -1, fdatasync, (int d), (d), d)
BY_FD(int, -1, fstat, (int d, struct stat *s), (d, s), d)
BY_FD(int, -1, fstat64, (int d, struct stat64 *s), (d, s), d)
BY_FD(int, -1, fchmod, (int d, mode_t m), (d, m), d)
BY_FD(int, -1, flock, (int d, int o), (d, o), d)
BY_FD(int, -1, ftruncate, (int d, off_t n), (d, n), d)
BY_FD(int, -1, ftruncate64, (int d, off64_t n), (d, n), d)
BY_FD(DIR *, NULL, fdopendir, (int d), (d), d)
BY_FD(struct dirent *, NULL, readdir, (DIR *d), (d), dirfd(d))
BY_FD(struct dirent64 *, NULL, readdir64, (DIR *d), (d), dirfd(d))
BY_FD(void *, MAP_FAILED, mmap, (void *a, size_t n, int p, int f, int d, off_t o), (a, n, p, f, d, o), d)
BY_FD(void *, MAP_FAILED, mmap64, (void *a, size_t n, int p, int f, int d, off64_t o), (a, n, p, f, d, o), d)
WRITES(write, (int d, const void *b, size_t n), (d, b, n), d, n)
WRITES(pwrite, (int d, const void *b, size_t n, off_t o), (d, b, n, o), d, n)
WRITES(pwrite64, (int d, const void *b, size_t n, off64_t o), (d, b, n, o), d, n)

/* A file server tells of a full disk when a file is closed; it is closed all the same. */
int close(int fd)
{
    REAL(close);
    int failed = hit("close", fd, NULL);
    int error = errno;
    int result = real(fd);
    if (!failed)
        return result;
    errno = error;
    return -1;
}
