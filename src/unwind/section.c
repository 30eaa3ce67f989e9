/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading memory that another thread may unmap at any moment: the kernel copies
 * it, and answers EFAULT instead of a signal.
 */
#include "unwind/section.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

/* Where process_vm_readv is forbidden (seccomp) or missing (qemu). */
static size_t read_by_file(uint8_t *out, uintptr_t address, size_t size) {
  int fd = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  size_t done = 0;
  while (done < size) {
    ssize_t got = pread(fd, out + done, size - done, (off_t)(address + done));
    if (got <= 0) break;
    done += (size_t)got;
  }
  close(fd);
  return done;
}

size_t pm__section_read(void *out, uintptr_t address, size_t size) {
  size_t done = 0;
  while (done < size) {
    struct iovec to = {(uint8_t *)out + done, size - done};
    struct iovec from = {(void *)(address + done), size - done}; /* NOLINT: an address of ours */
    ssize_t got = process_vm_readv(getpid(), &to, 1, &from, 1, 0);
    if (got <= 0) break;
    done += (size_t)got;
  }
  if (done < size) done += read_by_file((uint8_t *)out + done, address + done, size - done);
  return done;
}

bool pm__section_copy(struct pm_section *section, uintptr_t address, size_t size) {
  section->address = address;
  section->bytes = size ? malloc(size) : NULL;
  section->size = section->bytes ? pm__section_read(section->bytes, address, size) : 0;
  if (section->size) return true;
  pm__section_free(section);
  return false;
}

void pm__section_free(struct pm_section *section) {
  free(section->bytes);
  section->bytes = NULL;
  section->size = 0;
}

struct pm_bytes pm__section_from(const struct pm_section *section, uintptr_t address) {
  const uint8_t *end = section->bytes + section->size;
  uintptr_t offset = address - section->address;
  if (address < section->address || offset > section->size)
    return (struct pm_bytes){end, end, true};
  return (struct pm_bytes){section->bytes + offset, end, false};
}
