// Lua 5.1 for scripts that Larder's clients send: bytes in, replies out.
//
// Everything that Lua may end by longjmp stands in this C target, so that no frame of Swift is ever jumped over. Lua calls
// back through larder_script_host only, and these functions return normally.
#ifndef LARDER_LUA_BRIDGE_H
#define LARDER_LUA_BRIDGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// One interpreter. Used by one thread at a time.
typedef struct larder_script_state larder_script_state;

/// A word of a command, or a key or an argument of a script. Not owned.
typedef struct {
    const uint8_t *bytes;
    size_t count;
} larder_script_word;

/// The answer to a command.
typedef struct {
    enum {
        /// `bytes` are a reply in RESP.
        LARDER_ANSWER_ENCODED,
        /// A string: `bytes`.
        LARDER_ANSWER_STRING,
        LARDER_ANSWER_INTEGER,
        LARDER_ANSWER_NULL,
        /// +OK
        LARDER_ANSWER_OK,
    } kind;
    /// Valid until the next call.
    const uint8_t *bytes;
    size_t count;
    int64_t integer;
} larder_script_answer;

/// What a script may ask for. All functions get `context`; none may keep what it is given.
typedef struct {
    void *context;
    /// Runs a command and returns 0, with its answer; else the script ends, and cannot prevent it, with the returned
    /// number (see larder_script_run).
    /// @param protocol 2 or 3: the version of an encoded answer.
    int (*call)(
        void *context, const larder_script_word *words, size_t count, int protocol, larder_script_answer *answer);
    /// Asked now and then: the number with which to end the script, or 0.
    int (*interrupt)(void *context);
    /// Asked before something that may take up to seconds in one piece: the number with which to end the script, or 0.
    int (*weigh)(void *context);
    /// Writes to the log. `level` is 0 (debug) to 3 (warning).
    void (*log)(void *context, int level, const uint8_t *text, size_t count);
    /// Whether there is a command of this name.
    bool (*knows)(void *context, const uint8_t *name, size_t count);
    /// 40 hexadecimal digits.
    void (*sha1)(const uint8_t *bytes, size_t count, char *digits);
} larder_script_host;

/// How a run ended.
typedef enum {
    /// The reply is complete: a value or an error.
    LARDER_SCRIPT_REPLIED,
    /// The host ended it; there is no reply.
    LARDER_SCRIPT_ENDED,
    /// It needed more memory than it may have. The reply says so, and the state is to be destroyed.
    LARDER_SCRIPT_OUT_OF_MEMORY,
} larder_script_end;

/// One run of a compiled script, or of a function of a library.
typedef struct {
    /// From larder_script_compile.
    int function;
    /// What error texts call it.
    const char *name;
    /// For a library: the function to call, by the name that the library registers it by. Its parameters are the keys
    /// and the arguments, each as one table.
    const char *called;
    const larder_script_word *keys;
    size_t key_count;
    const larder_script_word *arguments;
    size_t argument_count;
    /// 2 or 3: the version of the reply.
    int protocol;
    /// The longest reply in bytes.
    size_t reply_bytes_max;
    const larder_script_host *host;
} larder_script_job;

/// @param bytes_max the most memory of the interpreter, in bytes.
/// @param seed of math.random.
/// @param version what scripts see as redis.REDIS_VERSION, like "7.0.15".
/// @return null without memory.
larder_script_state *larder_script_create(
    size_t bytes_max, uint64_t seed, const char *version, int version_number);
void larder_script_destroy(larder_script_state *state);

/// Compiles a script or a library; bytecode is refused.
/// @return a number for larder_script_job, or -1, with the reason in larder_script_output.
int larder_script_compile(larder_script_state *state, const uint8_t *bytes, size_t count, bool is_library);
/// Forgets a compiled script.
void larder_script_forget(larder_script_state *state, int function);

larder_script_end larder_script_run(larder_script_state *state, const larder_script_job *job);

/// What a library says of a function in its call of redis.register_function.
typedef struct {
    larder_script_word name;
    bool is_described;
    larder_script_word description;
    /// Bits: see larder_script_flag_name.
    unsigned flags;
} larder_script_declaration;

/// The name of a bit, from 0 on, of the flags of functions; null behind the last.
const char *larder_script_flag_name(unsigned bit);

/// Runs a compiled library, so that it registers its functions.
/// @param job what is there besides function, name and host is ignored; of the host only interrupt, weigh and log are used.
/// @param add is given each function; returns null, or a text that refuses it.
/// @return the reply is empty, or an error.
larder_script_end larder_script_register(
    larder_script_state *state, const larder_script_job *job, void *context,
    const char *(*add)(void *context, const larder_script_declaration *declaration));

/// The number with which the host ended the last run.
int larder_script_ending(const larder_script_state *state);
/// The encoded reply of the last run; valid until the next.
const uint8_t *larder_script_output(const larder_script_state *state, size_t *count);
/// Whether the last run left something behind that another script could see: the state is to be destroyed.
bool larder_script_is_spoilt(const larder_script_state *state);
/// Bytes of the interpreter now.
size_t larder_script_bytes(const larder_script_state *state);

#ifdef __cplusplus
}
#endif

#endif
