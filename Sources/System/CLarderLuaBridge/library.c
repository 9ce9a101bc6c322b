// Libraries of functions: FUNCTION LOAD and FCALL.
//
// A library registers its functions with redis.register_function while its main chunk runs. It runs once when it is
// loaded, so that its functions are known, and again before each call of one of them. So its local variables always
// have the values that they had after loading, whatever previous calls did.
#include "state.h"

#include <string.h>
#include <strings.h>

const char *larder_script_flag_name(unsigned bit) {
    static const char *const names[] = {
        "no-writes", "allow-oom", "allow-stale", "no-cluster", "allow-cross-slot-keys",
    };
    return bit < sizeof names / sizeof *names ? names[bit] : NULL;
}

/// The key in the registry of the function that the job calls.
static char found_key;

void larder_script_show_globals(lua_State *lua, int globals) {
    larder_script_state *state = larder_script_of(lua);
    // Nothing here needs memory: the name is in the registry, and the field exists.
    lua_rawgeti(lua, LUA_REGISTRYINDEX, state->shown);
    lua_rawgeti(lua, LUA_REGISTRYINDEX, state->index_name);
    lua_rawgeti(lua, LUA_REGISTRYINDEX, globals);
    lua_rawset(lua, -3);
    lua_pop(lua, 1);
}

// MARK: redis.register_function

static int refuse(lua_State *lua, const char *text) {
    larder_script_push_error(lua, text);
    return lua_error(lua);
}

/// The arguments of a call of redis.register_function. The strings and the function stay on the stack of the call.
typedef struct {
    larder_script_declaration declaration;
    bool is_named;
    /// The stack index of the function; 0 if it is not given.
    int callback;
} registration;

static larder_script_word word(lua_State *lua, int index) {
    larder_script_word word;
    word.bytes = (const uint8_t *)lua_tolstring(lua, index, &word.count);
    return word;
}

static unsigned take_flags(lua_State *lua, int index) {
    unsigned flags = 0;
    for (int place = 1;; place++) {
        lua_rawgeti(lua, index, place);
        if (lua_isnil(lua, -1)) {
            lua_pop(lua, 1);
            return flags;
        }
        unsigned bit = 0;
        const char *name = lua_type(lua, -1) == LUA_TSTRING ? lua_tostring(lua, -1) : "";
        while (larder_script_flag_name(bit) != NULL && strcasecmp(larder_script_flag_name(bit), name) != 0) bit++;
        if (larder_script_flag_name(bit) == NULL) refuse(lua, "unknown flag given");
        flags |= 1u << bit;
        lua_pop(lua, 1);
    }
}

/// Reads a named argument, whose value is on top; leaves the value there.
static void take_named(lua_State *lua, const char *name, registration *registration) {
    int value = lua_gettop(lua);
    if (strcasecmp(name, "function_name") == 0) {
        if (!lua_isstring(lua, value)) {
            refuse(lua, "function_name argument given to redis.register_function must be a string");
        }
        registration->declaration.name = word(lua, value);
        registration->is_named = true;
    } else if (strcasecmp(name, "description") == 0) {
        if (!lua_isstring(lua, value)) {
            refuse(lua, "description argument given to redis.register_function must be a string");
        }
        registration->declaration.description = word(lua, value);
        registration->declaration.is_described = true;
    } else if (strcasecmp(name, "callback") == 0) {
        if (!lua_isfunction(lua, value)) {
            refuse(lua, "callback argument given to redis.register_function must be a function");
        }
        registration->callback = value;
    } else if (strcasecmp(name, "flags") == 0) {
        if (!lua_istable(lua, value)) {
            refuse(lua, "flags argument to redis.register_function must be a table representing function flags");
        }
        registration->declaration.flags = take_flags(lua, value);
    } else {
        refuse(lua, "unknown argument given to redis.register_function");
    }
}

/// Reads the arguments from the table at index 1, and copies them to the stack above it.
static void take_table(lua_State *lua, registration *registration) {
    lua_pushnil(lua);
    while (lua_next(lua, 1) != 0) {
        // A table may have one name in many spellings of upper and lower case, but their number is limited by the stack.
        if (!lua_checkstack(lua, LUA_MINSTACK)) refuse(lua, "unknown argument given to redis.register_function");
        // Use a copy: the conversion to text must not change the key that lua_next needs.
        lua_pushvalue(lua, -2);
        if (!lua_isstring(lua, -1)) {
            refuse(lua, "named argument key given to redis.register_function is not a string");
        }
        const char *name = lua_tostring(lua, -1);
        lua_insert(lua, -2);
        take_named(lua, name, registration);
        // The stack now has the name, the value, and the key again on top.
        lua_pushvalue(lua, -3);
    }
    if (!registration->is_named) refuse(lua, "redis.register_function must get a function name argument");
    if (registration->callback == 0) refuse(lua, "redis.register_function must get a callback argument");
}

static void take_two(lua_State *lua, registration *registration) {
    if (!lua_isstring(lua, 1)) refuse(lua, "first argument to redis.register_function must be a string");
    if (!lua_isfunction(lua, 2)) refuse(lua, "second argument to redis.register_function must be a function");
    registration->declaration.name = word(lua, 1);
    registration->callback = 2;
}

static int register_function(lua_State *lua) {
    larder_script_state *state = larder_script_of(lua);
    if (!state->is_registering) {
        return refuse(lua, "redis.register_function can only be called on FUNCTION LOAD command");
    }
    registration registration;
    memset(&registration, 0, sizeof registration);
    switch (lua_gettop(lua)) {
    case 1:
        if (!lua_istable(lua, 1)) {
            refuse(
                lua, "calling redis.register_function with a single argument is only applicable to Lua table "
                "(representing named arguments).");
        }
        take_table(lua, &registration);
        break;
    case 2: take_two(lua, &registration); break;
    default: return refuse(lua, "wrong number of arguments to redis.register_function");
    }
    if (state->add != NULL) {
        const char *refusal = state->add(state->add_context, &registration.declaration);
        return refusal == NULL ? 0 : refuse(lua, refusal);
    }
    const char *called = state->job->called;
    size_t count = strlen(called);
    larder_script_word name = registration.declaration.name;
    if (name.count == count && memcmp(name.bytes, called, count) == 0) {
        lua_pushlightuserdata(lua, &found_key);
        lua_pushvalue(lua, registration.callback);
        lua_rawset(lua, LUA_REGISTRYINDEX);
    }
    return 0;
}

void larder_script_add_registration(lua_State *lua, const char *version, int version_number) {
    lua_pushcfunction(lua, register_function);
    lua_setfield(lua, -2, "register_function");
    larder_script_add_log(lua, version, version_number);
}

// MARK: Running a library

int larder_script_find_function(lua_State *lua) {
    larder_script_state *state = larder_script_of(lua);
    lua_pushlightuserdata(lua, &found_key);
    lua_pushnil(lua);
    lua_rawset(lua, LUA_REGISTRYINDEX);
    lua_rawgeti(lua, LUA_REGISTRYINDEX, state->handler);
    lua_insert(lua, -2);
    larder_script_show_globals(lua, state->library_globals);
    state->is_registering = true;
    int status = lua_pcall(lua, 0, 0, -2);
    state->is_registering = false;
    larder_script_show_globals(lua, state->function_globals);
    if (status != 0) {
        lua_remove(lua, -2);
        return status;
    }
    lua_pop(lua, 1);
    lua_pushlightuserdata(lua, &found_key);
    lua_rawget(lua, LUA_REGISTRYINDEX);
    return 0;
}

int larder_script_run_registration(lua_State *lua) {
    larder_script_state *state = larder_script_of(lua);
    lua_settop(lua, 0);
    lua_rawgeti(lua, LUA_REGISTRYINDEX, state->job->function);
    if (larder_script_find_function(lua) == 0 || state->ending != 0) return 0;
    size_t count;
    lua_pushfstring(lua, "ERR Error registering functions: %s", larder_script_push_error_text(lua, &count));
    const char *text = lua_tolstring(lua, -1, &count);
    larder_script_output_error(state, text, count);
    return 0;
}
