/*
 * Makes a process die by SIGKILL at its nth crash point, counted from crash_points_arm(). On Linux, in an executable that links
 * this code, each system call that changes a file is a crash point too: mkdir, write, fsync, rename, unlink. A write that ends the
 * process first writes half of its bytes.
 */
#ifndef CRASH_POINTS_H
#define CRASH_POINTS_H

/* Starts counting. The process dies at the crash point with this number, counted from 0. With a negative number it never dies. */
void crash_points_arm(long at);
/* Counts a crash point, and kills the process if this is the point at which it must die. */
void crash_point(void);
/* Stops counting, and returns the number of points. */
long crash_points_disarm(void);

#endif
