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
#define WITH_INSTRUCTION __attribute__((target("sse4.2")))
#include <nmmintrin.h>

WITH_INSTRUCTION static inline uint32_t add_word(uint32_t crc, uint64_t word) {
    return (uint32_t)_mm_crc32_u64(crc, word);
}

WITH_INSTRUCTION static inline uint32_t add_byte(uint32_t crc, uint8_t byte) { return _mm_crc32_u8(crc, byte); }

static int has_instruction(void) {
    __builtin_cpu_init();
    return __builtin_cpu_supports("sse4.2");
}

#elif defined(__aarch64__) && !defined(__AARCH64EB__)
#define HAS_INSTRUCTION 1

#define WITH_INSTRUCTION __attribute__((target("crc")))

// Uses the instructions directly instead of arm_acle.h, whose functions require compiler flags.
WITH_INSTRUCTION static inline uint32_t add_word(uint32_t crc, uint64_t word) {
    __asm__("crc32cx %w0, %w0, %x1" : "+r"(crc) : "r"(word));
    return crc;
}

WITH_INSTRUCTION static inline uint32_t add_byte(uint32_t crc, uint8_t byte) {
    __asm__("crc32cb %w0, %w0, %w1" : "+r"(crc) : "r"((uint32_t)byte));
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

#if defined(HAS_INSTRUCTION)
// An instruction takes several cycles, but three of them run in parallel if they are independent of each other. So long
// inputs are taken as three stripes.
enum { STRIPE = 256 };

// shifted[k][b]: the remainder of a checksum whose byte k is b, and whose other bytes are 0, followed by STRIPE zero
// bytes. Written once, by `prepare`.
static uint32_t shifted[4][256];

static inline uint32_t shift(uint32_t crc) {
    return shifted[0][crc & 0xFF] ^ shifted[1][crc >> 8 & 0xFF] ^ shifted[2][crc >> 16 & 0xFF] ^ shifted[3][crc >> 24];
}

static inline uint64_t word_at(const uint8_t *bytes) {
    uint64_t word;
    memcpy(&word, bytes, 8);
    return word;
}

WITH_INSTRUCTION static uint32_t extend_by_instruction(uint32_t crc, const uint8_t *bytes, size_t count) {
    while (count >= 3 * STRIPE) {
        uint32_t second = 0, third = 0;
        for (int at = 0; at < STRIPE; at += 8) {
            crc = add_word(crc, word_at(bytes + at));
            second = add_word(second, word_at(bytes + STRIPE + at));
            third = add_word(third, word_at(bytes + 2 * STRIPE + at));
        }
        crc = shift(shift(crc) ^ second) ^ third;
        bytes += 3 * STRIPE;
        count -= 3 * STRIPE;
    }
    while (count >= 8) {
        crc = add_word(crc, word_at(bytes));
        bytes += 8;
        count -= 8;
    }
    while (count-- > 0) crc = add_byte(crc, *bytes++);
    return crc;
}

static void prepare_stripes(void) {
    for (int bit = 0; bit < 32; bit++) {
        uint32_t remainder = (uint32_t)1 << bit;
        for (int zeros = 0; zeros < STRIPE; zeros++) remainder = remainder >> 8 ^ table[0][remainder & 0xFF];
        for (uint32_t byte = 0; byte < 256; byte++) {
            if (byte >> bit % 8 & 1) shifted[bit / 8][byte] ^= remainder;
        }
    }
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
    if (has_instruction()) {
        prepare_stripes();
        extend = extend_by_instruction;
    }
#endif
}

uint32_t larder_crc32c_extend(uint32_t crc, const void *bytes, size_t count) {
    return ~extend(~crc, bytes, count);
}

uint32_t larder_crc32c_extend_portable(uint32_t crc, const void *bytes, size_t count) {
    return ~extend_by_table(~crc, bytes, count);
}

int larder_crc32c_is_accelerated(void) { return extend != extend_by_table; }
