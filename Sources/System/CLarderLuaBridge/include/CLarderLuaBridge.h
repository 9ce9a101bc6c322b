// Lua 5.1 for scripts of Larder's clients: bytes in, replies out.
//
// All code that Lua may leave by longjmp is in this C target, so that no frame of Swift is ever skipped. Lua calls back
// only through larder_script_host, whose functions return normally.
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

/// The functions of the host that a script may call. All of them get `context`; none may keep its arguments.
typedef struct {
    void *context;
    /// Runs a command. Returns 0 and the answer, or a number with which the script ends (see larder_script_run); the
    /// script cannot prevent that.
    /// @param protocol 2 or 3: the version of an encoded answer.
    int (*call)(
        void *context, const larder_script_word *words, size_t count, int protocol, larder_script_answer *answer);
    /// Called now and then. Returns the number with which to end the script, or 0 to continue.
    int (*interrupt)(void *context);
    /// Called before work that may take up to seconds without interruption. Returns the number with which to end the
    /// script, or 0 to continue.
    int (*weigh)(void *context);
    /// Writes to the log. `level` is 0 (debug) to 3 (warning).
    void (*log)(void *context, int level, const uint8_t *text, size_t count);
    /// Whether there is a command of this name.
    bool (*knows)(void *context, const uint8_t *name, size_t count);
    /// Writes the SHA-1 of `bytes` as 40 hexadecimal digits.
    void (*sha1)(const uint8_t *bytes, size_t count, char *digits);
} larder_script_host;

/// How a run ended.
typedef enum {
    /// The reply is complete: a value or an error.
    LARDER_SCRIPT_REPLIED,
    /// The host ended the script; there is no reply.
    LARDER_SCRIPT_ENDED,
    /// The script needed more memory than allowed. The reply is an error, and the state must be destroyed.
    LARDER_SCRIPT_OUT_OF_MEMORY,
} larder_script_end;

/// One run of a compiled script, or of a function of a library.
typedef struct {
    /// From larder_script_compile.
    int function;
    /// The name of the script or library in error texts.
    const char *name;
    /// For a library: the function to call, by its registered name. Its parameters are the keys and the arguments, each
    /// as one table.
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
/// @param seed the seed of math.random.
/// @param version what scripts see as redis.REDIS_VERSION, like "7.0.15".
/// @return null if memory is exhausted.
larder_script_state *larder_script_create(
    size_t bytes_max, uint64_t seed, const char *version, int version_number);
void larder_script_destroy(larder_script_state *state);

/// Compiles a script or a library; bytecode is refused.
/// @return a number for larder_script_job, or -1, with the reason in larder_script_output.
int larder_script_compile(larder_script_state *state, const uint8_t *bytes, size_t count, bool is_library);
/// Forgets a compiled script.
void larder_script_forget(larder_script_state *state, int function);

larder_script_end larder_script_run(larder_script_state *state, const larder_script_job *job);

/// The declaration of a function in a library's call of redis.register_function.
typedef struct {
    larder_script_word name;
    bool is_described;
    larder_script_word description;
    /// Bits: see larder_script_flag_name.
    unsigned flags;
} larder_script_declaration;

/// The name of a flag of functions by its bit, from 0 on; null after the last one.
const char *larder_script_flag_name(unsigned bit);

/// Runs a compiled library, so that it registers its functions.
/// @param job only function, name and host are used, and of the host only interrupt, weigh and log.
/// @param add receives each function; returns null, or the text of an error to refuse it.
/// @return the reply is empty, or an error.
larder_script_end larder_script_register(
    larder_script_state *state, const larder_script_job *job, void *context,
    const char *(*add)(void *context, const larder_script_declaration *declaration));

/// The number with which the host ended the last run.
int larder_script_ending(const larder_script_state *state);
/// The encoded reply of the last run; valid until the next.
const uint8_t *larder_script_output(const larder_script_state *state, size_t *count);
/// Whether the last run left anything behind that another script could see. If so, the state must be destroyed.
bool larder_script_is_spoilt(const larder_script_state *state);
/// The current memory of the interpreter, in bytes.
size_t larder_script_bytes(const larder_script_state *state);

#ifdef __cplusplus
}
#endif

#endif
