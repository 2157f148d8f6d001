/*
 * Makes a process die by SIGKILL at its nth crash point, counted from crash_points_arm(). Linked into an executable, it also
 * makes a point of each system call that changes a file: mkdir, write (which first writes half), fsync, rename, unlink.
 */
#ifndef CRASH_POINTS_H
#define CRASH_POINTS_H

/* Starts counting. The process dies at the point with this number (from 0), never for a negative one. */
void crash_points_arm(long at);
/* One point. */
void crash_point(void);
/* Stops counting, and returns the number of points. */
long crash_points_disarm(void);

#endif
