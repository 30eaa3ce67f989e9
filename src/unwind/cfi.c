/* SPDX-License-Identifier: Apache-2.0 */
/* The records of .eh_frame: where an FDE begins and ends, what its CIE says. */
#include "unwind/cfi.h"

#include "unwind/machine.h"
#include "unwind/pointer.h"

/* One CIE or FDE: its bytes behind the length field, and where its id field lies. */
struct record {
  struct pm_bytes body;
  uintptr_t id_address;
  uint32_t id; /* 0: CIE; else the distance back to the CIE */
};

/* False at the end of the section, at its terminator and for a length that leaves it. */
static bool read_record(const struct pm_section *section, uintptr_t address, struct record *record,
                        uintptr_t *next) {
  struct pm_bytes reader = pm__section_from(section, address);
  *next = 0;
  uint64_t length = pm__bytes_u32(&reader);
  if (length == UINT32_MAX) length = pm__bytes_u64(&reader);
  if (!length) return false;
  record->id_address = pm__section_address(section, &reader);
  record->body = pm__bytes_part(&reader, length);
  if (reader.bad) return false;
  *next = pm__section_address(section, &reader);
  record->id = pm__bytes_u32(&record->body); /* 32 bits, whatever form the length has */
  return !record->body.bad;
}

/* The letters behind 'z', each with its own data. */
static bool read_augmentation(const struct pm_section *section, const char *letters,
                              struct pm_bytes *data, struct pm_cie *cie) {
  for (; *letters; letters++) {
    switch (*letters) {
    case 'R': cie->encoding = pm__bytes_u8(data); break;
    case 'L': (void)pm__bytes_u8(data); break;
    case 'P': { /* the personality routine; its encoding may be indirect, its value is not read */
      uint8_t encoding = pm__bytes_u8(data);
      (void)pm__pointer_value(data, encoding);
      break;
    }
    case 'S': cie->signal = true; break;
    case 'B': break; /* aarch64: signed with the B key */
    default: return true; /* unknown letters end what can be read; 'z' told the data's length */
    }
  }
  (void)section;
  return !data->bad;
}

/* The augmentation string, up to its NUL; NULL when that is missing. */
static const char *read_letters(struct pm_bytes *body) {
  const uint8_t *from = body->at;
  const uint8_t *nul = pm__bytes_left(body) ? memchr(from, 0, pm__bytes_left(body)) : NULL;
  if (body->bad || !nul) return NULL;
  body->at = nul + 1;
  return (const char *)from;
}

static bool read_cie_body(const struct pm_section *section, struct pm_bytes body,
                          struct pm_cie *cie) {
  uint8_t version = pm__bytes_u8(&body);
  const char *letters = read_letters(&body);
  if (!letters || (version != 1 && version != 3)) return false;
  cie->code_align = pm__bytes_uleb(&body);
  cie->data_align = pm__bytes_sleb(&body);
  uint64_t ra = version == 1 ? pm__bytes_u8(&body) : pm__bytes_uleb(&body);
  if (body.bad || ra != PM_DWARF_RA) return false;
  cie->has_data = letters[0] == 'z';
  if (letters[0] && !cie->has_data) return false; /* "eh": older than any compiler for this CPU */
  if (cie->has_data) {
    struct pm_bytes data = pm__bytes_part(&body, pm__bytes_uleb(&body));
    if (!read_augmentation(section, letters + 1, &data, cie)) return false;
  }
  return !body.bad && pm__cfi_initial(section, cie, body);
}

static void read_cie(const struct pm_section *section, uintptr_t address, struct pm_cie *cie) {
  struct record record;
  uintptr_t next;
  *cie = (struct pm_cie){.address = address};
  cie->valid = read_record(section, address, &record, &next) && record.id == 0 &&
               read_cie_body(section, record.body, cie);
}

bool pm__cfi_read(const struct pm_section *section, uintptr_t address, struct pm_cie *cie,
                  struct pm_fde *fde, uintptr_t *next) {
  struct record record;
  if (!read_record(section, address, &record, next) || record.id == 0) return false;
  uintptr_t cie_address = record.id_address - record.id;
  if (cie->address != cie_address) read_cie(section, cie_address, cie);
  if (!cie->valid) return false;
  struct pm_bytes *body = &record.body;
  fde->start = pm__pointer_read(section, body, cie->encoding, 0);
  fde->end = fde->start + pm__pointer_value(body, cie->encoding & 0x0f);
  if (cie->has_data) (void)pm__bytes_part(body, pm__bytes_uleb(body));
  fde->instructions = *body;
  return !body->bad && fde->end > fde->start;
}
