/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The static libjansson of distributions is compiled for executables: its load.o
 * refers to stdin in a way that a shared library cannot bind to the C library's.
 * Only json_loadf looks at it, to name the source in an error, and nobody here
 * calls that. So it gets a stdin of its own, which no one else sees.
 */
void *stdin __attribute__((visibility("hidden")));
