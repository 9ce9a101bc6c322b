// CRC-32C (Castagnoli) with the processor's own instruction where there is one.
//
// Here because Swift cannot name these instructions, and a table costs several times as much: the checksum of a
// journal frame is on the path of every write.

#ifndef LARDER_CCRC32C_H
#define LARDER_CCRC32C_H

#include <stddef.h>
#include <stdint.h>

/// The checksum of bytes whose beginning has the checksum `crc` (0 for nothing) and that go on with `count` bytes.
/// Any alignment; `bytes` may be NULL when `count` is 0. Thread-safe.
uint32_t larder_crc32c_extend(uint32_t crc, const void *bytes, size_t count);

/// The same without special instructions: what is used where the processor has none, and what tests compare with.
uint32_t larder_crc32c_extend_portable(uint32_t crc, const void *bytes, size_t count);

/// 1 where `larder_crc32c_extend` uses the processor's instruction.
int larder_crc32c_is_accelerated(void);

#endif
