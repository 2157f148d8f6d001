#define _GNU_SOURCE
#include "crash_points.h"

#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

static atomic_bool armed;
static atomic_long points;
static long deadline = -1;

void crash_points_arm(long at) {
    deadline = at;
    atomic_store(&points, 0);
    atomic_store(&armed, 1);
}

long crash_points_disarm(void) {
    atomic_store(&armed, 0);
    return atomic_load(&points);
}

/* Whether the process must die at this point. */
static int is_last(void) { return atomic_load(&armed) && atomic_fetch_add(&points, 1) == deadline; }

static void die(void) {
    kill(getpid(), SIGKILL);
    for (;;) pause();
}

void crash_point(void) {
    if (is_last()) die();
}

#if defined(__linux__)
/* These definitions replace the C library's, in the executable's own code and in the shared libraries that it loads. */
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

int mkdir(const char *path, mode_t mode) {
    crash_point();
    return (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode);
}

int rename(const char *from, const char *to) {
    crash_point();
    return (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

int unlink(const char *path) {
    crash_point();
    return (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
}

int fsync(int descriptor) {
    crash_point();
    return (int)syscall(SYS_fsync, descriptor);
}

ssize_t write(int descriptor, const void *bytes, size_t count) {
    struct stat information;
    if (atomic_load(&armed) && fstat(descriptor, &information) == 0 && S_ISREG(information.st_mode) && is_last()) {
        syscall(SYS_write, descriptor, bytes, count / 2);
        die();
    }
    return syscall(SYS_write, descriptor, bytes, count);
}
#endif
