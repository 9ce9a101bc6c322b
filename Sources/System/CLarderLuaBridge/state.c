// The life cycle of an interpreter, and its runs.
#include "state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// MARK: Memory

/// Lua's allocator: counts the bytes, and refuses allocations beyond the limit.
static void *allocate(void *context, void *old, size_t old_bytes, size_t bytes) {
    larder_script_state *state = context;
    if (bytes == 0) {
        free(old);
        state->bytes -= old_bytes;
        return NULL;
    }
    // Lua requires that shrinking never fails.
    if (bytes > old_bytes && bytes - old_bytes > state->bytes_max - state->bytes) {
        state->is_out_of_memory = true;
        return NULL;
    }
    // One instruction that creates a long text may take as long as thousands of others, so ask the host soon.
    if (bytes > LARDER_SCRIPT_HEAVY_BYTES && state->job != NULL && state->ending == 0) {
        state->is_hurried = true;
        // lua_sethook may be called at any time, even in the middle of an instruction, as here.
        lua_sethook(state->lua, larder_script_hook, LUA_MASKCOUNT, 1);
    }
    void *new = realloc(old, bytes);
    if (new == NULL) {
        if (bytes <= old_bytes) return old;
        state->is_out_of_memory = true;
        return NULL;
    }
    state->bytes = state->bytes - old_bytes + bytes;
    return new;
}

bool larder_script_append(larder_script_state *state, const void *bytes, size_t count) {
    size_t most = state->job != NULL ? state->job->reply_bytes_max : SIZE_MAX / 4;
    if (state->output_count > most || count > most - state->output_count) return false;
    if (count > state->output_capacity - state->output_count) {
        size_t capacity = 2 * (state->output_count + count);
        if (capacity < 256) capacity = 256;
        uint8_t *larger = realloc(state->output, capacity);
        if (larger == NULL) return false;
        state->output = larger;
        state->output_capacity = capacity;
    }
    memcpy(state->output + state->output_count, bytes, count);
    state->output_count += count;
    return true;
}

void larder_script_output_error(larder_script_state *state, const char *text, size_t count) {
    state->output_count = 0;
    larder_script_append(state, "-", 1);
    while (count > 0 && (text[count - 1] == '\r' || text[count - 1] == '\n')) count -= 1;
    if (!larder_script_append(state, text, count)) return;
    for (size_t index = 1; index < state->output_count; index++) {
        if (state->output[index] == '\r' || state->output[index] == '\n') state->output[index] = ' ';
    }
    larder_script_append(state, "\r\n", 2);
}

// MARK: Ending scripts that do not end by themselves

int larder_script_raise_ending(lua_State *lua, int number) {
    larder_script_state *state = larder_script_of(lua);
    if (state->ending == 0) state->ending = number;
    // From now on every instruction fails, in this coroutine and in the main thread, so the script cannot prevent its
    // end.
    lua_sethook(lua, larder_script_hook, LUA_MASKCOUNT, 1);
    lua_sethook(state->lua, larder_script_hook, LUA_MASKCOUNT, 1);
    lua_pushnil(lua);
    return lua_error(lua);
}

void larder_script_check(lua_State *lua) {
    larder_script_state *state = larder_script_of(lua);
    int number = state->ending;
    if (number == 0 && state->job != NULL) {
        number = state->job->host->interrupt(state->job->host->context);
    }
    if (number != 0) larder_script_raise_ending(lua, number);
}

void larder_script_weigh(lua_State *lua) {
    larder_script_state *state = larder_script_of(lua);
    if (state->job == NULL) return;
    int number = state->job->host->weigh(state->job->host->context);
    if (number != 0) larder_script_raise_ending(lua, number);
}

void larder_script_hook(lua_State *lua, lua_Debug *event) {
    (void)event;
    larder_script_state *state = larder_script_of(lua);
    state->hooks += 1;
    if (!state->is_hurried && state->ending == 0 && state->hooks % LARDER_SCRIPT_HOOKS_PER_QUESTION != 0) return;
    if (state->is_hurried && state->ending == 0) {
        lua_sethook(state->lua, larder_script_hook, LUA_MASKCOUNT, LARDER_SCRIPT_HOOK_INSTRUCTIONS);
    }
    state->is_hurried = false;
    larder_script_check(lua);
}

// MARK: Errors

void larder_script_push_error(lua_State *lua, const char *text) {
    lua_createtable(lua, 0, 1);
    lua_pushfstring(lua, "ERR %s", text);
    lua_setfield(lua, -2, "err");
}

/// Converts an error to a table, with the position where it occurred, as Redis's handler does.
static int handle_error(lua_State *lua) {
    if (larder_script_of(lua)->ending != 0) return 1;
    lua_Debug where;
    bool is_known = lua_getstack(lua, 1, &where) && lua_getinfo(lua, "Sl", &where);
    if (is_known && strcmp(where.what, "C") == 0) {
        is_known = lua_getstack(lua, 2, &where) && lua_getinfo(lua, "Sl", &where) && strcmp(where.what, "C") != 0;
    }
    bool is_table = lua_istable(lua, 1) && !luaL_getmetafield(lua, 1, "__readonly");
    lua_settop(lua, 1);
    if (!is_table) {
        const char *text = lua_tostring(lua, 1);
        if (text == NULL) text = lua_isnil(lua, 1) ? "nil" : lua_typename(lua, lua_type(lua, 1));
        larder_script_push_error(lua, text);
        lua_replace(lua, 1);
    }
    lua_settop(lua, 1);
    if (is_known) {
        // Use raw access, because the script may have given the table metamethods.
        lua_pushliteral(lua, "source");
        lua_pushstring(lua, where.source);
        lua_rawset(lua, 1);
        lua_pushliteral(lua, "line");
        lua_pushinteger(lua, where.currentline);
        lua_rawset(lua, 1);
    }
    return 1;
}

/// Pushes the text of a field of the table on top, or nil.
static const char *push_field(lua_State *lua, const char *name, size_t *count) {
    lua_pushstring(lua, name);
    lua_rawget(lua, -2);
    if (!lua_isstring(lua, -1)) {
        lua_pop(lua, 1);
        lua_pushnil(lua);
        return NULL;
    }
    return lua_tolstring(lua, -1, count);
}

const char *larder_script_push_error_text(lua_State *lua, size_t *count) {
    const char *text = NULL;
    if (lua_istable(lua, -1)) {
        text = push_field(lua, "err", count);
        if (text != NULL) return text;
        lua_pop(lua, 1);
    }
    lua_pushliteral(lua, "ERR the script raised an error that is no text, and has no field err");
    return lua_tolstring(lua, -1, count);
}

/// Writes the error on top as the reply.
static void reply_with_error(lua_State *lua, larder_script_state *state, const char *name) {
    size_t count = 0, source_count = 0, line_count = 0;
    if (!lua_istable(lua, -1)) {
        const char *text = lua_tolstring(lua, -1, &count);
        if (text == NULL) text = "execution failure";
        lua_pushfstring(lua, "ERR Error running script %s, %s", name, text);
        text = lua_tolstring(lua, -1, &count);
        larder_script_output_error(state, text, count);
        return;
    }
    const char *text = larder_script_push_error_text(lua, &count);
    lua_pushvalue(lua, -2);
    const char *source = push_field(lua, "source", &source_count);
    lua_pushvalue(lua, -2);
    const char *line = push_field(lua, "line", &line_count);
    state->output_count = 0;
    luaL_Buffer buffer;
    luaL_buffinit(lua, &buffer);
    luaL_addlstring(&buffer, text, count);
    if (source != NULL && line != NULL) {
        luaL_addstring(&buffer, " script: ");
        luaL_addstring(&buffer, name);
        luaL_addstring(&buffer, ", on ");
        luaL_addlstring(&buffer, source, source_count);
        luaL_addstring(&buffer, ":");
        luaL_addlstring(&buffer, line, line_count);
        luaL_addstring(&buffer, ".");
    }
    luaL_pushresult(&buffer);
    text = lua_tolstring(lua, -1, &count);
    larder_script_output_error(state, text, count);
}

// MARK: Runs

static void push_words(lua_State *lua, const larder_script_word *words, size_t count) {
    lua_createtable(lua, count > INT32_MAX ? INT32_MAX : (int)count, 0);
    for (size_t index = 0; index < count; index++) {
        lua_pushlstring(lua, (const char *)words[index].bytes, words[index].count);
        lua_rawseti(lua, -2, (int)index + 1);
    }
}

/// Pushes the function that the job calls, and its parameters.
/// @return the number of parameters; -1 with an error on top.
static int push_call(lua_State *lua) {
    larder_script_state *state = larder_script_of(lua);
    const larder_script_job *job = state->job;
    if (job->called == NULL) {
        lua_rawgeti(lua, LUA_REGISTRYINDEX, state->globals);
        push_words(lua, job->keys, job->key_count);
        lua_setfield(lua, -2, "KEYS");
        push_words(lua, job->arguments, job->argument_count);
        lua_setfield(lua, -2, "ARGV");
        lua_pop(lua, 1);
        lua_rawgeti(lua, LUA_REGISTRYINDEX, job->function);
        return 0;
    }
    lua_rawgeti(lua, LUA_REGISTRYINDEX, job->function);
    if (larder_script_find_function(lua) != 0) return -1;
    push_words(lua, job->keys, job->key_count);
    push_words(lua, job->arguments, job->argument_count);
    return 2;
}

/// Runs the state's job.
static int run_job(lua_State *lua) {
    larder_script_state *state = larder_script_of(lua);
    lua_settop(lua, 0);
    lua_rawgeti(lua, LUA_REGISTRYINDEX, state->handler);
    int parameters = push_call(lua);
    if (parameters >= 0 && lua_pcall(lua, parameters, 1, 1) == 0) {
        larder_script_encode(lua, state);
    } else if (state->ending == 0) {
        reply_with_error(lua, state, state->job->name);
    }
    return 0;
}

/// Calls a function of the registry for a job.
static larder_script_end run(larder_script_state *state, const larder_script_job *job, int function) {
    lua_State *lua = state->lua;
    state->job = job;
    state->protocol = 2;
    state->ending = 0;
    state->output_count = 0;
    state->is_out_of_memory = false;
    state->random = state->shared_random;
    state->is_seeded = false;
    state->hooks = 0;
    state->is_hurried = false;
    lua_sethook(lua, larder_script_hook, LUA_MASKCOUNT, LARDER_SCRIPT_HOOK_INSTRUCTIONS);
    lua_rawgeti(lua, LUA_REGISTRYINDEX, function);
    int status = lua_pcall(lua, 0, 0, 0);
    lua_sethook(lua, NULL, 0, 0);
    if (!state->is_seeded) state->shared_random = state->random;
    lua_settop(lua, 0);
    state->is_registering = false;
    larder_script_end end = LARDER_SCRIPT_REPLIED;
    if (state->ending != 0) {
        end = LARDER_SCRIPT_ENDED;
    } else if (status == LUA_ERRMEM || state->is_out_of_memory) {
        end = LARDER_SCRIPT_OUT_OF_MEMORY;
        state->is_spoilt = true;
        char text[160];
        int count = snprintf(
            text, sizeof text, "ERR the script needed more than %zu bytes of memory (--max-script-memory) script: %.64s",
            state->bytes_max, job->name);
        larder_script_output_error(state, text, (size_t)count);
    } else if (status != 0) {
        static const char text[] = "ERR the script's reply could not be made";
        larder_script_output_error(state, text, sizeof text - 1);
    }
    state->job = NULL;
    return end;
}

larder_script_end larder_script_run(larder_script_state *state, const larder_script_job *job) {
    larder_script_end end = run(state, job, state->runner);
    if (job->called != NULL) larder_script_show_globals(state->lua, state->globals);
    return end;
}

larder_script_end larder_script_register(
    larder_script_state *state, const larder_script_job *job, void *context,
    const char *(*add)(void *context, const larder_script_declaration *declaration)) {
    state->add = add;
    state->add_context = context;
    larder_script_end end = run(state, job, state->registrar);
    state->add = NULL;
    state->add_context = NULL;
    larder_script_show_globals(state->lua, state->globals);
    return end;
}

int larder_script_ending(const larder_script_state *state) { return state->ending; }

const uint8_t *larder_script_output(const larder_script_state *state, size_t *count) {
    *count = state->output_count;
    return state->output;
}

bool larder_script_is_spoilt(const larder_script_state *state) { return state->is_spoilt; }

size_t larder_script_bytes(const larder_script_state *state) { return state->bytes; }

// MARK: Compilation

typedef struct {
    const uint8_t *bytes;
    size_t count;
    bool is_library;
    int function;
} source;

static int compile_source(lua_State *lua) {
    source *source = lua_touserdata(lua, 1);
    larder_script_state *state = larder_script_of(lua);
    // The parser has no reference to the name of the chunk. This string keeps the name alive while the parser runs.
    const char *name = source->is_library ? "@user_function" : "@user_script";
    lua_pushstring(lua, name);
    if (luaL_loadbuffer(lua, (const char *)source->bytes, source->count, name) != 0) {
        size_t count;
        const char *text = lua_tolstring(lua, -1, &count);
        if (text == NULL) return 0;
        lua_pushfstring(lua, "ERR Error compiling %s: %s", source->is_library ? "function" : "script (new function)", text);
        text = lua_tolstring(lua, -1, &count);
        larder_script_output_error(state, text, count);
        return 0;
    }
    source->function = luaL_ref(lua, LUA_REGISTRYINDEX);
    return 0;
}

int larder_script_compile(larder_script_state *state, const uint8_t *bytes, size_t count, bool is_library) {
    static const char bytecode[] = "ERR Error compiling script (new function): user_script:1: bytecode is refused";
    static const char memory[] = "ERR Error compiling script (new function): it needs more memory than a script may have";
    source source = {bytes, count, is_library, -1};
    state->output_count = 0;
    state->is_out_of_memory = false;
    if (count > 0 && bytes[0] == LUA_SIGNATURE[0]) {
        larder_script_output_error(state, bytecode, sizeof bytecode - 1);
        return -1;
    }
    lua_rawgeti(state->lua, LUA_REGISTRYINDEX, state->compiler);
    lua_pushlightuserdata(state->lua, &source);
    int status = lua_pcall(state->lua, 1, 0, 0);
    lua_settop(state->lua, 0);
    if (status == LUA_ERRMEM || state->is_out_of_memory || (status != 0 && source.function < 0)) {
        state->is_spoilt = true;
        larder_script_output_error(state, memory, sizeof memory - 1);
        return -1;
    }
    return source.function;
}

void larder_script_forget(larder_script_state *state, int function) {
    luaL_unref(state->lua, LUA_REGISTRYINDEX, function);
}

// MARK: Life

typedef struct {
    const char *version;
    int version_number;
} opening;

static int keep(lua_State *lua, lua_CFunction function) {
    lua_pushcfunction(lua, function);
    return luaL_ref(lua, LUA_REGISTRYINDEX);
}

static int open_state(lua_State *lua) {
    opening *opening = lua_touserdata(lua, 1);
    larder_script_state *state = larder_script_of(lua);
    larder_script_open(lua, opening->version, opening->version_number);
    state->runner = keep(lua, run_job);
    state->compiler = keep(lua, compile_source);
    state->handler = keep(lua, handle_error);
    state->registrar = keep(lua, larder_script_run_registration);
    return 0;
}

larder_script_state *larder_script_create(
    size_t bytes_max, uint64_t seed, const char *version, int version_number) {
    larder_script_state *state = calloc(1, sizeof *state);
    if (state == NULL) return NULL;
    state->bytes_max = bytes_max;
    state->shared_random = seed & 0xFFFFFFFFFFFFULL;
    state->lua = lua_newstate(allocate, state);
    opening opening = {version, version_number};
    if (state->lua == NULL || lua_cpcall(state->lua, open_state, &opening) != 0) {
        larder_script_destroy(state);
        return NULL;
    }
    // Collect less often than by default, because one run leaves little garbage compared with the libraries.
    lua_gc(state->lua, LUA_GCSETPAUSE, 400);
    return state;
}

void larder_script_destroy(larder_script_state *state) {
    if (state == NULL) return;
    if (state->lua != NULL) lua_close(state->lua);
    free(state->output);
    free(state);
}
