/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The profiles that are kept at a time: the session's, and, while a reporter runs,
 * the one of its interval. Each sample is merged once and booked in all of them.
 * Collector only, or under the profile lock.
 */
#ifndef PM_SESSION_BOOKS_H
#define PM_SESSION_BOOKS_H

#include "profile/profile.h"
#include "sampler/sampler.h"

/* Opens a book (PM_BOOK_*) on an initialised profile: what threads used before is not its. */
void pm__books_open(uint32_t book, struct pm_profile *profile);
/* Closes it; the profile stays as it is. */
void pm__books_close(uint32_t book);
/* The profile of an open book, or NULL. */
struct pm_profile *pm__books_profile(uint32_t book);

/* Books what the threads' rings hold. */
void pm__books_drain(void);
/* Brings every thread's row up to what the kernel says, but for `slack_ns` (see profile.h). */
void pm__books_settle(uint32_t book, uint64_t slack_ns);
/* Gives the rows the names that their threads have by now. */
void pm__books_rename(uint32_t book);
/* Settles threads that have ended in all books and gives their blocks back. */
void pm__books_retire(void);

#endif /* PM_SESSION_BOOKS_H */
