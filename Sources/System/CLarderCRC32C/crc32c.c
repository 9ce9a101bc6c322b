#include "ccrc32c.h"

#include <string.h>

#if defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#ifndef HWCAP_CRC32
#define HWCAP_CRC32 (1 << 7)
#endif
#endif

typedef uint32_t (*extend_function)(uint32_t, const uint8_t *, size_t);

// table[k][b]: the remainder of the byte b followed by k zero bytes. Written once, by `prepare`.
static uint32_t table[8][256];

static uint32_t extend_by_table(uint32_t crc, const uint8_t *bytes, size_t count) {
    while (count >= 8) {
        // Byte by byte, so that the order of bytes in the machine's words does not matter.
        crc = table[7][(bytes[0] ^ crc) & 0xFF] ^ table[6][(bytes[1] ^ crc >> 8) & 0xFF] ^
              table[5][(bytes[2] ^ crc >> 16) & 0xFF] ^ table[4][bytes[3] ^ crc >> 24] ^
              table[3][bytes[4]] ^ table[2][bytes[5]] ^ table[1][bytes[6]] ^ table[0][bytes[7]];
        bytes += 8;
        count -= 8;
    }
    while (count-- > 0) crc = crc >> 8 ^ table[0][(crc ^ *bytes++) & 0xFF];
    return crc;
}

#if defined(__x86_64__)
#define HAS_INSTRUCTION 1
#include <nmmintrin.h>

__attribute__((target("sse4.2")))
static uint32_t extend_by_instruction(uint32_t crc, const uint8_t *bytes, size_t count) {
    uint64_t wide = crc;
    while (count >= 8) {
        uint64_t word;
        memcpy(&word, bytes, 8);
        wide = _mm_crc32_u64(wide, word);
        bytes += 8;
        count -= 8;
    }
    crc = (uint32_t)wide;
    while (count-- > 0) crc = _mm_crc32_u8(crc, *bytes++);
    return crc;
}

static int has_instruction(void) {
    __builtin_cpu_init();
    return __builtin_cpu_supports("sse4.2");
}

#elif defined(__aarch64__) && !defined(__AARCH64EB__)
#define HAS_INSTRUCTION 1

// Uses the instructions directly instead of arm_acle.h, whose functions require compiler flags.
__attribute__((target("crc")))
static uint32_t extend_by_instruction(uint32_t crc, const uint8_t *bytes, size_t count) {
    while (count >= 8) {
        uint64_t word;
        memcpy(&word, bytes, 8);
        __asm__("crc32cx %w0, %w0, %x1" : "+r"(crc) : "r"(word));
        bytes += 8;
        count -= 8;
    }
    while (count-- > 0) {
        uint32_t byte = *bytes++;
        __asm__("crc32cb %w0, %w0, %w1" : "+r"(crc) : "r"(byte));
    }
    return crc;
}

static int has_instruction(void) {
#if defined(__APPLE__)
    return 1; // Every processor that macOS runs on.
#elif defined(__linux__)
    return (getauxval(AT_HWCAP) & HWCAP_CRC32) != 0;
#else
    return 0;
#endif
}
#endif

static extend_function extend = extend_by_table;

// Runs before main, and so before any thread is started. The values that it writes are constant afterwards.
__attribute__((constructor))
static void prepare(void) {
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t remainder = byte;
        for (int bit = 0; bit < 8; bit++) remainder = remainder & 1 ? remainder >> 1 ^ 0x82F63B78 : remainder >> 1;
        table[0][byte] = remainder;
    }
    for (int zeros = 1; zeros < 8; zeros++) {
        for (uint32_t byte = 0; byte < 256; byte++) {
            uint32_t shorter = table[zeros - 1][byte];
            table[zeros][byte] = shorter >> 8 ^ table[0][shorter & 0xFF];
        }
    }
#if defined(HAS_INSTRUCTION)
    if (has_instruction()) extend = extend_by_instruction;
#endif
}

uint32_t larder_crc32c_extend(uint32_t crc, const void *bytes, size_t count) {
    return ~extend(~crc, bytes, count);
}

uint32_t larder_crc32c_extend_portable(uint32_t crc, const void *bytes, size_t count) {
    return ~extend_by_table(~crc, bytes, count);
}

int larder_crc32c_is_accelerated(void) { return extend != extend_by_table; }
