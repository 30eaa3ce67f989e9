/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind/pointer.h"

/* The low four bits are the form, the next three what it is relative to (LSB, 10.5). */
enum {
  FORM_ABSPTR = 0x0,
  FORM_ULEB128 = 0x1,
  FORM_UDATA2 = 0x2,
  FORM_UDATA4 = 0x3,
  FORM_UDATA8 = 0x4,
  FORM_SLEB128 = 0x9,
  FORM_SDATA2 = 0xa,
  FORM_SDATA4 = 0xb,
  FORM_SDATA8 = 0xc,
  BASE_ABSOLUTE = 0x00,
  BASE_PC = 0x10,
  BASE_DATA = 0x30,
};

uintptr_t pm__pointer_value(struct pm_bytes *reader, uint8_t encoding) {
  switch (encoding & 0x0f) {
  case FORM_ABSPTR:
  case FORM_UDATA8:
  case FORM_SDATA8: return (uintptr_t)pm__bytes_u64(reader);
  case FORM_ULEB128: return (uintptr_t)pm__bytes_uleb(reader);
  case FORM_SLEB128: return (uintptr_t)pm__bytes_sleb(reader);
  case FORM_UDATA2: return pm__bytes_u16(reader);
  case FORM_UDATA4: return pm__bytes_u32(reader);
  case FORM_SDATA2: return (uintptr_t)(intptr_t)(int16_t)pm__bytes_u16(reader);
  case FORM_SDATA4: return (uintptr_t)(intptr_t)(int32_t)pm__bytes_u32(reader);
  default: reader->bad = true; return 0;
  }
}

uintptr_t pm__pointer_read(const struct pm_section *section, struct pm_bytes *reader,
                           uint8_t encoding, uintptr_t data) {
  uintptr_t here = pm__section_address(section, reader);
  uintptr_t value = pm__pointer_value(reader, encoding);
  switch (encoding & 0xf0) {
  case BASE_ABSOLUTE: return value;
  case BASE_PC: return here + value;
  case BASE_DATA: return data + value;
  default: reader->bad = true; return 0; /* indirect, textrel, funcrel: never for code here */
  }
}
