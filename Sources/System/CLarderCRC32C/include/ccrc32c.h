// CRC-32C (Castagnoli) with the processor's own instruction if it has one.
//
// In C, because Swift has no access to these instructions, and a table takes several times as long. Each write computes
// the checksum of a journal frame.

#ifndef LARDER_CCRC32C_H
#define LARDER_CCRC32C_H

#include <stddef.h>
#include <stdint.h>

/// Extends a checksum by `count` bytes; `crc` is the checksum of the bytes before them (0 for none). Any alignment;
/// `bytes` may be NULL if `count` is 0. Thread-safe.
uint32_t larder_crc32c_extend(uint32_t crc, const void *bytes, size_t count);

/// Like larder_crc32c_extend, without special instructions. Used on processors that have none, and by tests for
/// comparison.
uint32_t larder_crc32c_extend_portable(uint32_t crc, const void *bytes, size_t count);

/// Returns 1 if `larder_crc32c_extend` uses the processor's instruction.
int larder_crc32c_is_accelerated(void);

#endif
