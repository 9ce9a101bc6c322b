// Fuzzing of the bridge to Lua with libFuzzer: any text as a script, with various replies of the host. Not a part of the
// package: `make fuzz` builds and runs it.
//
// The first byte of an input selects the host's replies, when the host stops the script, and whether the rest is a script
// or a library of functions. One interpreter runs many scripts. After each, a probe checks that Lua's libraries are unchanged.
#include <stdlib.h>
#include <string.h>

#include "CLarderLuaBridge.h"

static long asked;
static unsigned char choice;

static int call(
    void *context, const larder_script_word *words, size_t count, int protocol, larder_script_answer *answer) {
    static const char *const replies[] = {
        "$3\r\nabc\r\n", "*3\r\n:1\r\n$-1\r\n*1\r\n+OK\r\n", "-ERR no\r\n", "%1\r\n+a\r\n,1.5\r\n", "~2\r\n:1\r\n#t\r\n", "_\r\n",
        "=7\r\ntxt:abc\r\n", "(123456789\r\n", "*-1\r\n", ":-9223372036854775808\r\n",
    };
    (void)context;
    (void)protocol;
    size_t sum = choice;
    for (size_t index = 0; index < count; index++) {
        for (size_t place = 0; place < words[index].count; place++) sum += words[index].bytes[place];
    }
    if (sum % 31 == 0) return 7;
    answer->kind = LARDER_ANSWER_ENCODED;
    answer->bytes = (const uint8_t *)replies[sum % (sizeof replies / sizeof *replies)];
    answer->count = strlen((const char *)answer->bytes);
    return 0;
}

static int interrupt(void *context) {
    (void)context;
    return ++asked > 40 ? 9 : 0;
}

static int weigh(void *context) {
    (void)context;
    return choice % 2 == 0 ? 5 : 0;
}

static void write_log(void *context, int level, const uint8_t *text, size_t count) {
    (void)context;
    (void)level;
    // Read the whole text, so that AddressSanitizer checks it.
    unsigned char sum = 0;
    for (size_t index = 0; index < count; index++) sum ^= text[index];
    choice ^= sum & 0;
}

static bool knows(void *context, const uint8_t *name, size_t count) {
    (void)context;
    return count > 0 && name[0] == 'g';
}

static void sha1(const uint8_t *bytes, size_t count, char *digits) {
    (void)bytes;
    memset(digits, '0' + (int)(count % 10), 40);
}

static larder_script_host host = {NULL, call, interrupt, weigh, write_log, knows, sha1};
static larder_script_state *state;
static int probe;

static const char *take_function(void *context, const larder_script_declaration *declaration) {
    (void)context;
    unsigned char sum = (unsigned char)declaration->flags;
    for (size_t index = 0; index < declaration->name.count; index++) sum ^= declaration->name.bytes[index];
    if (declaration->is_described) {
        for (size_t index = 0; index < declaration->description.count; index++) sum ^= declaration->description.bytes[index];
    }
    choice ^= sum & 0;
    return sum % 7 == 0 ? "no" : NULL;
}

static larder_script_end run(int function, const char *called, int protocol) {
    static const larder_script_word words[] = {{(const uint8_t *)"key", 3}, {(const uint8_t *)"\0\xFF\r\n", 4}};
    asked = 0;
    larder_script_job job = {function, "f_fuzz", called, words, 1, words + 1, 1, protocol, 1 << 20, &host};
    return larder_script_run(state, &job);
}

static void begin(void) {
    static const char text[] =
        "return (string.rep('a',2) == 'aa' and #KEYS == 1 and rawget(_G,'x') == nil and type(redis.call) == 'function'"
        " and rawget(redis,'register_function') == nil and ('b'):upper() == 'B' and next({}) == nil and tostring(1) == '1' and table.concat({1,2}) == '12') and 1 or 0";
    state = larder_script_create(4 << 20, 1, "7.0.0", 0x070000);
    probe = larder_script_compile(state, (const uint8_t *)text, sizeof text - 1, false);
    if (probe < 0) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count) {
    if (count < 1) return 0;
    if (state == NULL) begin();
    choice = bytes[0];
    // Every third input is a library, with a function f.
    bool is_library = choice % 3 == 0;
    int function = larder_script_compile(state, bytes + 1, count - 1, is_library);
    size_t length;
    if (function >= 0) {
        if (is_library) {
            asked = 0;
            larder_script_job job = {function, "f_fuzz", NULL, NULL, 0, NULL, 0, 2, 1 << 20, &host};
            larder_script_register(state, &job, NULL, take_function);
        }
        if (!larder_script_is_spoilt(state)) run(function, is_library ? "f" : NULL, 2 + choice % 2);
        const uint8_t *output = larder_script_output(state, &length);
        unsigned char sum = 0;
        for (size_t index = 0; index < length; index++) sum ^= output[index];
        choice ^= sum & 0;
        larder_script_forget(state, function);
    }
    if (larder_script_is_spoilt(state) || larder_script_bytes(state) > 3 << 20) {
        larder_script_destroy(state);
        begin();
        return 0;
    }
    choice = 1;
    if (run(probe, NULL, 2) != LARDER_SCRIPT_REPLIED) abort();
    const uint8_t *output = larder_script_output(state, &length);
    if (length != 4 || memcmp(output, ":1\r\n", 4) != 0) abort();
    return 0;
}
