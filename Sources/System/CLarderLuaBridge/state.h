// Declarations shared by the files of this target.
#ifndef LARDER_LUA_BRIDGE_STATE_H
#define LARDER_LUA_BRIDGE_STATE_H

#include <lua.h>

#include <lauxlib.h>
#include <lualib.h>

#include "CLarderLuaBridge.h"

struct larder_script_state {
    lua_State *lua;
    size_t bytes, bytes_max;
    /// Set during a run.
    const larder_script_job *job;
    /// The protocol version of the replies to commands: redis.setresp.
    int protocol;
    /// The number with which the host ends the run; 0 if the run is not ended. The script cannot prevent its end.
    int ending;
    bool is_spoilt;
    bool is_out_of_memory;
    /// Whether the next call of the hook must ask the host, because an instruction has processed a long text.
    bool is_hurried;
    /// Whether a script may have set cjson to write arrays with gaps of any length.
    bool writes_sparse_arrays;
    int hooks;
    /// `random` is the 48-bit state of math.random in a run, and `shared_random` that for the start of the next run.
    uint64_t random, shared_random;
    bool is_seeded;
    uint8_t *output;
    size_t output_count, output_capacity;
    /// References into Lua's registry: tables of globals for scripts, for functions of libraries, and for libraries
    /// that register functions; the metatable that selects one of these tables; the text "__index"; and functions.
    int globals, function_globals, library_globals, shown, index_name;
    int runner, compiler, handler, registrar;
    /// Whether a library is registering its functions.
    bool is_registering;
    /// Set while a library is loaded: receives its functions.
    const char *(*add)(void *context, const larder_script_declaration *declaration);
    void *add_context;
};

/// Returns the state of an interpreter, which is its allocator's context.
static inline larder_script_state *larder_script_of(lua_State *lua) {
    void *state;
    lua_getallocf(lua, &state);
    return state;
}

enum {
    /// The number of instructions between two calls of the hook. Every tenth call asks the host.
    LARDER_SCRIPT_HOOK_INSTRUCTIONS = 100,
    LARDER_SCRIPT_HOOKS_PER_QUESTION = 10,
    /// The host is notified before work on longer texts.
    LARDER_SCRIPT_HEAVY_BYTES = 256 << 10,
};

void larder_script_hook(lua_State *lua, lua_Debug *event);
/// Ends the script with a number. Does not return.
int larder_script_raise_ending(lua_State *lua, int number);
/// Asks the host whether to end the script. For loops in C.
void larder_script_check(lua_State *lua);
/// Notifies the host that the following work may take long, and cannot be interrupted.
void larder_script_weigh(lua_State *lua);

/// Calls the function in the first upvalue with all arguments. Its errors look as if the script had called it directly.
int larder_script_forward(lua_State *lua);

/// Pushes {err = "ERR " + text}.
void larder_script_push_error(lua_State *lua, const char *text);

// Replies (replies.c).

/// Pushes the value of an encoded reply.
void larder_script_push_reply(lua_State *lua, const uint8_t *bytes, size_t count);
/// Encodes the value on top as the run's reply.
void larder_script_encode(lua_State *lua, larder_script_state *state);
/// Appends to the output. Returns false if memory is exhausted, or the reply is too long.
bool larder_script_append(larder_script_state *state, const void *bytes, size_t count);
/// Replaces the output by an error; line ends become spaces.
void larder_script_output_error(larder_script_state *state, const char *text, size_t count);

// Libraries of functions (library.c).

/// Selects the table of globals with this reference.
void larder_script_show_globals(lua_State *lua, int globals);
/// Runs the library on top of the stack, and replaces it by the function that the job calls, or nil.
/// @return 0, or the status of lua_pcall, with the error in its place.
int larder_script_find_function(lua_State *lua);
/// Calls a library, for larder_script_register.
int larder_script_run_registration(lua_State *lua);
/// Sets the functions of redis.* that a library may call while it registers functions, in the table on top.
void larder_script_add_registration(lua_State *lua, const char *version, int version_number);

// Errors (state.c).

/// Pushes the text of the error on top, which the handler has processed.
const char *larder_script_push_error_text(lua_State *lua, size_t *count);

// The environment of scripts (sandbox.c, bounds.c, commands.c).

/// Opens the libraries, and creates the environment of scripts from them.
void larder_script_open(lua_State *lua, const char *version, int version_number);
/// Replaces functions of the string library that take time or stack without a bound. The library is on top.
void larder_script_bound_strings(lua_State *lua);
/// Replaces functions of the table library that change tables, or take time without a bound. The library is on top.
void larder_script_bound_tables(lua_State *lua);
/// Replaces functions of the library bit that write beyond their buffers. The library is on top.
void larder_script_bound_bits(lua_State *lua);
/// Replaces functions of cjson, which is on top, that take memory beyond the limit.
void larder_script_bound_json(lua_State *lua);
/// Sets the functions of redis.* in the table on top.
void larder_script_add_commands(lua_State *lua, bool is_for_functions);
/// Sets redis.log, the levels, and the version, in the table on top.
void larder_script_add_log(lua_State *lua, const char *version, int version_number);

#endif
