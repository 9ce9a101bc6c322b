// redis.*: what a script calls.
#include "state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/// Returns the host of the run; raises an error outside of a run.
static const larder_script_host *host(lua_State *lua) {
    larder_script_state *state = larder_script_of(lua);
    if (state->job == NULL) luaL_error(lua, "redis.* can only be called inside a script invocation");
    return state->job->host;
}

/// Raises {err = "ERR " + text}, without a position, which the handler adds.
static int raise_error(lua_State *lua, const char *text) {
    larder_script_push_error(lua, text);
    return lua_error(lua);
}

/// Replaces a number on the stack by its exact text.
static void make_text(lua_State *lua, int index) {
    lua_Number value = lua_tonumber(lua, index);
    char text[64];
    int count;
    if (value > -1e15 && value < 1e15 && (lua_Number)(long long)value == value && value != 0) {
        count = snprintf(text, sizeof text, "%lld", (long long)value);
    } else {
        count = snprintf(text, sizeof text, "%.17g", value);
    }
    lua_pushlstring(lua, text, (size_t)count);
    lua_replace(lua, index);
}

/// Converts all arguments to words. Returns their number; 0 with an error on the stack.
static size_t take_words(lua_State *lua, larder_script_word *words, larder_script_word **all) {
    int count = lua_gettop(lua);
    *all = words;
    if (count == 0) {
        larder_script_push_error(lua, "Please specify at least one argument for this redis lib call");
        return 0;
    }
    // A userdata, so that it is freed after the call, however the call ends.
    if (count > 16) {
        *all = lua_newuserdata(lua, (size_t)count * sizeof **all);
        lua_insert(lua, 1);
    }
    int first = count > 16 ? 2 : 1;
    for (int index = 0; index < count; index++) {
        int type = lua_type(lua, first + index);
        if (type == LUA_TNUMBER) make_text(lua, first + index);
        else if (type != LUA_TSTRING) {
            larder_script_push_error(lua, "Lua redis lib command arguments must be strings or integers");
            return 0;
        }
        size_t bytes;
        (*all)[index].bytes = (const uint8_t *)lua_tolstring(lua, first + index, &bytes);
        (*all)[index].count = bytes;
    }
    return (size_t)count;
}

static int run_command(lua_State *lua, bool raises) {
    const larder_script_host *own = host(lua);
    larder_script_state *state = larder_script_of(lua);
    larder_script_word few[16], *words;
    size_t count = take_words(lua, few, &words);
    if (count == 0) return raises ? lua_error(lua) : 1;
    larder_script_answer answer = {LARDER_ANSWER_NULL, NULL, 0, 0};
    int ending = own->call(own->context, words, count, state->protocol, &answer);
    if (ending != 0) return larder_script_raise_ending(lua, ending);
    // Remove the arguments: thousands of them would leave no space on the stack for a reply.
    lua_settop(lua, 0);
    switch (answer.kind) {
    case LARDER_ANSWER_STRING: lua_pushlstring(lua, (const char *)answer.bytes, answer.count); return 1;
    case LARDER_ANSWER_INTEGER: lua_pushnumber(lua, (lua_Number)answer.integer); return 1;
    case LARDER_ANSWER_NULL:
        if (state->protocol == 3) lua_pushnil(lua);
        else lua_pushboolean(lua, 0);
        return 1;
    case LARDER_ANSWER_OK:
        lua_createtable(lua, 0, 1);
        lua_pushliteral(lua, "OK");
        lua_setfield(lua, -2, "ok");
        return 1;
    case LARDER_ANSWER_ENCODED: break;
    }
    bool is_error = answer.count > 0 && answer.bytes[0] == '-';
    larder_script_push_reply(lua, answer.bytes, answer.count);
    return raises && is_error ? lua_error(lua) : 1;
}

static int call(lua_State *lua) { return run_command(lua, true); }

static int protected_call(lua_State *lua) { return run_command(lua, false); }

static int error_reply(lua_State *lua) {
    if (lua_gettop(lua) != 1 || lua_type(lua, 1) != LUA_TSTRING) {
        larder_script_push_error(lua, "wrong number or type of arguments");
        return 1;
    }
    const char *text = lua_tostring(lua, 1);
    if (text[0] == '-') text += 1;
    lua_createtable(lua, 0, 1);
    if (strchr(text, ' ') == NULL) lua_pushfstring(lua, "ERR %s", text);
    else lua_pushstring(lua, text);
    lua_setfield(lua, -2, "err");
    return 1;
}

static int status_reply(lua_State *lua) {
    if (lua_gettop(lua) != 1 || lua_type(lua, 1) != LUA_TSTRING) {
        larder_script_push_error(lua, "wrong number or type of arguments");
        return 1;
    }
    lua_createtable(lua, 0, 1);
    lua_pushvalue(lua, 1);
    lua_setfield(lua, -2, "ok");
    return 1;
}

static int sha1hex(lua_State *lua) {
    if (lua_gettop(lua) != 1) return raise_error(lua, "wrong number of arguments");
    size_t count;
    const char *text = lua_tolstring(lua, 1, &count);
    char digits[40];
    host(lua)->sha1((const uint8_t *)text, text == NULL ? 0 : count, digits);
    lua_pushlstring(lua, digits, sizeof digits);
    return 1;
}

static int write_log(lua_State *lua) {
    larder_script_state *state = larder_script_of(lua);
    // A library runs again for each call of its functions. Log its lines only once, when it registers them.
    if (state->is_registering && state->add == NULL) return 0;
    int count = lua_gettop(lua);
    if (count < 2) return raise_error(lua, "redis.log() requires two arguments or more.");
    if (!lua_isnumber(lua, 1)) return raise_error(lua, "First argument must be a number (log level).");
    lua_Number level = lua_tonumber(lua, 1);
    if (!(level >= 0 && level < 4)) return raise_error(lua, "Invalid debug level.");
    luaL_Buffer buffer;
    luaL_buffinit(lua, &buffer);
    for (int index = 2; index <= count; index++) {
        if (!lua_isstring(lua, index)) continue;
        if (index > 2) luaL_addchar(&buffer, ' ');
        lua_pushvalue(lua, index);
        luaL_addvalue(&buffer);
    }
    luaL_pushresult(&buffer);
    size_t bytes;
    const char *text = lua_tolstring(lua, -1, &bytes);
    const larder_script_host *own = host(lua);
    own->log(own->context, (int)level, (const uint8_t *)text, bytes);
    return 0;
}

static int setresp(lua_State *lua) {
    host(lua);
    if (lua_gettop(lua) != 1) return raise_error(lua, "redis.setresp() requires one argument.");
    lua_Number version = lua_tonumber(lua, 1);
    if (version != 2 && version != 3) return raise_error(lua, "RESP version must be 2 or 3.");
    larder_script_of(lua)->protocol = (int)version;
    return 0;
}

/// There is no replication: the arguments are checked, and nothing else is done.
static int set_repl(lua_State *lua) {
    host(lua);
    if (lua_gettop(lua) != 1) return raise_error(lua, "redis.set_repl() requires two arguments.");
    lua_Number flags = lua_tonumber(lua, 1);
    if (!(flags >= 0 && flags <= 3)) {
        return raise_error(lua, "Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or REPL_NONE.");
    }
    return 0;
}

static int replicate_commands(lua_State *lua) {
    lua_pushboolean(lua, 1);
    return 1;
}

static int breakpoint(lua_State *lua) {
    lua_pushboolean(lua, 0);
    return 1;
}

static int debug(lua_State *lua) {
    (void)lua;
    return 0;
}

/// There is one user, who may run every command.
static int acl_check_cmd(lua_State *lua) {
    const larder_script_host *own = host(lua);
    larder_script_word few[16], *words;
    if (take_words(lua, few, &words) == 0) return lua_error(lua);
    if (!own->knows(own->context, words[0].bytes, words[0].count)) {
        return raise_error(lua, "Invalid command passed to redis.acl_check_cmd()");
    }
    lua_pushboolean(lua, 1);
    return 1;
}

static void set_functions(lua_State *lua, const luaL_Reg *functions) {
    for (const luaL_Reg *function = functions; function->name != NULL; function++) {
        lua_pushcfunction(lua, function->func);
        lua_setfield(lua, -2, function->name);
    }
}

typedef struct {
    const char *name;
    int value;
} constant;

static void set_constants(lua_State *lua, const constant *constants) {
    for (const constant *next = constants; next->name != NULL; next++) {
        lua_pushinteger(lua, next->value);
        lua_setfield(lua, -2, next->name);
    }
}

void larder_script_add_commands(lua_State *lua, bool is_for_functions) {
    static const luaL_Reg functions[] = {
        {"call", call}, {"pcall", protected_call}, {"error_reply", error_reply}, {"status_reply", status_reply},
        {"sha1hex", sha1hex}, {"setresp", setresp}, {"set_repl", set_repl}, {"acl_check_cmd", acl_check_cmd},
        {NULL, NULL},
    };
    static const luaL_Reg of_scripts[] = {
        {"replicate_commands", replicate_commands}, {"breakpoint", breakpoint}, {"debug", debug}, {NULL, NULL},
    };
    static const constant constants[] = {
        {"REPL_NONE", 0}, {"REPL_AOF", 1}, {"REPL_SLAVE", 2}, {"REPL_REPLICA", 2}, {"REPL_ALL", 3}, {NULL, 0},
    };
    set_functions(lua, functions);
    if (!is_for_functions) set_functions(lua, of_scripts);
    set_constants(lua, constants);
}

void larder_script_add_log(lua_State *lua, const char *version, int version_number) {
    static const constant levels[] = {
        {"LOG_DEBUG", 0}, {"LOG_VERBOSE", 1}, {"LOG_NOTICE", 2}, {"LOG_WARNING", 3}, {NULL, 0},
    };
    lua_pushcfunction(lua, write_log);
    lua_setfield(lua, -2, "log");
    set_constants(lua, levels);
    lua_pushstring(lua, version);
    lua_setfield(lua, -2, "REDIS_VERSION");
    lua_pushinteger(lua, version_number);
    lua_setfield(lua, -2, "REDIS_VERSION_NUM");
}
