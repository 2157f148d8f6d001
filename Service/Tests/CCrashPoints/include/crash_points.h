/*
 * Where a process dies: by SIGKILL at the nth of its points, counted from crash_points_arm(). Linked into an executable, it also
 * makes a point of each system call that changes a file: mkdir, write (which first writes half), fsync, rename, unlink.
 */
#ifndef CRASH_POINTS_H
#define CRASH_POINTS_H

/* Counts from now; dies at the point of this number (from 0), never for a negative one. */
void crash_points_arm(long at);
/* One point. */
void crash_point(void);
/* How many there were; none are counted any more. */
long crash_points_disarm(void);

#endif
