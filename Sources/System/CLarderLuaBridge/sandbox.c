// The environment of scripts: globals and libraries that they cannot change, and no access to the machine.
//
// - The table of globals is empty. Its metatable looks names up in the real table, and refuses assignments. The same
//   holds for the libraries.
// - Functions that bypass metamethods when they write to a table, such as rawset, refuse these tables.
// - Functions that would change the interpreter for other scripts are replaced, or mark the state as spoilt.
#include "state.h"

#include <math.h>
#include <string.h>

#if __has_include(<lua-cjson.h>)
#include <lua-cjson.h>
#define LARDER_HAS_JSON 1
#endif
#if __has_include(<lua-bitop.h>)
#include <lua-bitop.h>
#define LARDER_HAS_BIT 1
#endif

/// Completes the error text on top of the stack, if a C function has called another C function that failed. The text
/// has the name and the position of the direct caller, but the script is one level above.
static void complete_error(lua_State *lua) {
    const char *text = lua_tostring(lua, -1);
    // These texts already have a position, or would not have one in a script either.
    if (strncmp(text, "user_script:", 12) == 0 || strncmp(text, "user_function:", 14) == 0
        || strncmp(text, "attempt to ", 11) == 0) return;
    lua_Debug where;
    if (strncmp(text, "bad argument ", 13) == 0 && lua_getstack(lua, 0, &where) && lua_getinfo(lua, "n", &where)
        && where.name != NULL) {
        lua_pushfstring(lua, "to '%s'", where.name);
        luaL_gsub(lua, text, "to '?'", lua_tostring(lua, -1));
        lua_replace(lua, -3);
        lua_pop(lua, 1);
    }
    luaL_where(lua, 1);
    lua_insert(lua, -2);
    lua_concat(lua, 2);
}

int larder_script_forward(lua_State *lua) {
    lua_pushvalue(lua, lua_upvalueindex(1));
    lua_insert(lua, 1);
    if (lua_pcall(lua, lua_gettop(lua) - 1, LUA_MULTRET, 0) == 0) return lua_gettop(lua);
    if (larder_script_of(lua)->ending == 0 && lua_type(lua, -1) == LUA_TSTRING) complete_error(lua);
    return lua_error(lua);
}

// MARK: Tables that cannot be changed

/// Raises an error without a position, like Redis's own functions.
static int refuse_change_by_function(lua_State *lua) {
    lua_pushliteral(lua, "Attempt to modify a readonly table");
    return lua_error(lua);
}

static int refuse_change(lua_State *lua) { return luaL_error(lua, "Attempt to modify a readonly table"); }

static int refuse_unknown(lua_State *lua) {
    const char *name = lua_isstring(lua, 2) ? lua_tostring(lua, 2) : luaL_typename(lua, 2);
    return luaL_error(lua, "Script attempted to access nonexistent global variable '%s'", name);
}

/// Replaces the table on top by an empty one that gives read access to the original table and refuses changes.
static void protect(lua_State *lua) {
    lua_newtable(lua);
    lua_createtable(lua, 0, 4);
    lua_pushvalue(lua, -3);
    lua_setfield(lua, -2, "__index");
    lua_pushcfunction(lua, refuse_change);
    lua_setfield(lua, -2, "__newindex");
    lua_pushboolean(lua, 0);
    lua_setfield(lua, -2, "__metatable");
    lua_pushboolean(lua, 1);
    lua_setfield(lua, -2, "__readonly");
    lua_setmetatable(lua, -2);
    lua_remove(lua, -2);
}

/// Pushes the table behind a protected table, and returns true; otherwise pushes nothing.
static bool push_shown(lua_State *lua, int index) {
    if (!lua_istable(lua, index) || !luaL_getmetafield(lua, index, "__readonly")) return false;
    lua_pop(lua, 1);
    return luaL_getmetafield(lua, index, "__index");
}

/// Calls the function in the first upvalue, unless its first argument is a protected table.
static int call_unless_protected(lua_State *lua) {
    if (lua_istable(lua, 1) && luaL_getmetafield(lua, 1, "__readonly")) return refuse_change_by_function(lua);
    return larder_script_forward(lua);
}

/// Calls the function in the first upvalue. If the first argument is a protected table, passes the table behind it
/// instead.
static int call_with_shown(lua_State *lua) {
    if (push_shown(lua, 1)) lua_replace(lua, 1);
    return larder_script_forward(lua);
}

/// Returns an iterator over the first argument. A protected table is iterated without giving the script access to the
/// table behind it. The upvalues are the original function pairs, and the function next that scripts see.
static int pairs(lua_State *lua) {
    if (lua_istable(lua, 1) && luaL_getmetafield(lua, 1, "__readonly")) {
        lua_pushvalue(lua, lua_upvalueindex(2));
        lua_pushvalue(lua, 1);
        lua_pushnil(lua);
        return 3;
    }
    return larder_script_forward(lua);
}

/// Calls the function in the first upvalue. Its effect persists, so the state is marked as spoilt, and no other script
/// may use it.
static int call_and_spoil(lua_State *lua) {
    if (lua_gettop(lua) > 0) larder_script_of(lua)->is_spoilt = true;
    return larder_script_forward(lua);
}

/// Replaces a function of the table on top by a closure that has the original function as its upvalue.
static void wrap(lua_State *lua, const char *name, lua_CFunction wrapper) {
    lua_getfield(lua, -1, name);
    if (lua_isnil(lua, -1)) {
        lua_pop(lua, 1);
        return;
    }
    lua_pushcclosure(lua, wrapper, 1);
    lua_setfield(lua, -2, name);
}

// MARK: Functions of the base library

/// As in Redis: if the error is a table, returns the text of its field err.
static int protected_call(lua_State *lua) {
    luaL_checkany(lua, 1);
    int status = lua_pcall(lua, lua_gettop(lua) - 1, LUA_MULTRET, 0);
    // The forced end of a script cannot be caught.
    if (larder_script_of(lua)->ending != 0) return lua_error(lua);
    if (status != 0 && lua_istable(lua, -1)) {
        lua_pushliteral(lua, "err");
        lua_rawget(lua, -2);
        if (lua_isstring(lua, -1)) lua_replace(lua, -2);
        else lua_pop(lua, 1);
    }
    if (!lua_checkstack(lua, 1)) return luaL_error(lua, "stack overflow");
    lua_pushboolean(lua, status == 0);
    lua_insert(lua, 1);
    return lua_gettop(lua);
}

/// Calls the handler in the first upvalue, but not for the forced end of a script. No hooks run while the error of that
/// end is handled, so a handler that does not return could never be stopped.
static int handle_unless_ending(lua_State *lua) {
    if (larder_script_of(lua)->ending != 0) return 1;
    lua_settop(lua, 1);
    lua_pushvalue(lua, lua_upvalueindex(1));
    lua_insert(lua, 1);
    lua_call(lua, 1, 1);
    return 1;
}

static int protected_call_with_handler(lua_State *lua) {
    luaL_checkany(lua, 2);
    lua_settop(lua, 2);
    lua_pushcclosure(lua, handle_unless_ending, 1);
    lua_insert(lua, 1);
    int status = lua_pcall(lua, 0, LUA_MULTRET, 1);
    if (larder_script_of(lua)->ending != 0) return lua_error(lua);
    lua_pushboolean(lua, status == 0);
    lua_replace(lua, 1);
    return lua_gettop(lua);
}

/// Compiles the text at index 1; the name at index 2 is text.
static int compile(lua_State *lua) {
    size_t count;
    const char *text = lua_tolstring(lua, 1, &count);
    if (count > 0 && text[0] == LUA_SIGNATURE[0]) {
        lua_pushnil(lua);
        lua_pushliteral(lua, "bytecode is refused");
        return 2;
    }
    if (count > LARDER_SCRIPT_HEAVY_BYTES) larder_script_weigh(lua);
    // The parser keeps no reference to the name. This string keeps the name alive, because Lua stores equal strings
    // only once.
    const char *name = lua_tostring(lua, 2);
    lua_pushstring(lua, name);
    if (luaL_loadbuffer(lua, text, count, name) == 0) return 1;
    lua_pushnil(lua);
    lua_insert(lua, -2);
    return 2;
}

static int load_string(lua_State *lua) {
    luaL_checkstring(lua, 1);
    if (lua_isnoneornil(lua, 2)) {
        lua_settop(lua, 1);
        lua_pushvalue(lua, 1);
    } else {
        luaL_checkstring(lua, 2);
        lua_settop(lua, 2);
    }
    return compile(lua);
}

static int load_function(lua_State *lua) {
    luaL_checktype(lua, 1, LUA_TFUNCTION);
    const char *name = luaL_optstring(lua, 2, "=(load)");
    lua_settop(lua, 2);
    lua_pushstring(lua, name);
    lua_replace(lua, 2);
    lua_newtable(lua);
    // Read all pieces first, because the beginning of the text decides whether it is bytecode.
    int pieces = 0;
    for (;;) {
        lua_pushvalue(lua, 1);
        lua_call(lua, 0, 1);
        if (lua_isnil(lua, -1) || (lua_isstring(lua, -1) && lua_objlen(lua, -1) == 0)) break;
        if (!lua_isstring(lua, -1)) return luaL_error(lua, "reader function must return a string");
        lua_rawseti(lua, 3, ++pieces);
    }
    lua_pop(lua, 1);
    luaL_Buffer buffer;
    luaL_buffinit(lua, &buffer);
    for (int piece = 1; piece <= pieces; piece++) {
        lua_rawgeti(lua, 3, piece);
        luaL_addvalue(&buffer);
    }
    luaL_pushresult(&buffer);
    lua_replace(lua, 1);
    lua_settop(lua, 2);
    return compile(lua);
}

/// All scripts share the garbage collector: they can query and run it, but not change its settings.
static int collect_garbage(lua_State *lua) {
    static const char *const names[] = {
        "collect", "count", "step", "stop", "restart", "setpause", "setstepmul", NULL,
    };
    int option = luaL_checkoption(lua, 1, "collect", names);
    if (option == 1) {
        lua_pushnumber(lua, lua_gc(lua, LUA_GCCOUNT, 0) + lua_gc(lua, LUA_GCCOUNTB, 0) / 1024.0);
    } else if (option == 2) {
        lua_pushboolean(lua, lua_gc(lua, LUA_GCSTEP, 0));
    } else {
        lua_pushnumber(lua, option == 0 ? lua_gc(lua, LUA_GCCOLLECT, 0) : 0);
    }
    return 1;
}

/// unpack, with the number of elements computed without overflow.
static int unpack(lua_State *lua) {
    luaL_checktype(lua, 1, LUA_TTABLE);
    lua_Number first = luaL_optnumber(lua, 2, 1);
    lua_Number last = lua_isnoneornil(lua, 3) ? (lua_Number)lua_objlen(lua, 1) : luaL_checknumber(lua, 3);
    if (!(first <= last)) return 0;
    if (!(first >= INT32_MIN && last <= INT32_MAX)) return luaL_error(lua, "too many results to unpack");
    int64_t count = (int64_t)last - (int64_t)first + 1;
    if (count > 8000 || !lua_checkstack(lua, (int)count)) return luaL_error(lua, "too many results to unpack");
    for (int64_t index = (int64_t)first; index <= (int64_t)last; index++) lua_rawgeti(lua, 1, (int)index);
    return (int)count;
}

// MARK: math.random, as in Redis: the same numbers for the same seed everywhere (lrand48 of POSIX). A script that sets
// no seed gets different numbers each time.

static int32_t next_random(larder_script_state *state) {
    state->random = (state->random * 0x5DEECE66DULL + 0xB) & 0xFFFFFFFFFFFFULL;
    return (int32_t)(state->random >> 17);
}

static int math_random(lua_State *lua) {
    lua_Number random = (lua_Number)(next_random(larder_script_of(lua)) % INT32_MAX) / (lua_Number)INT32_MAX;
    switch (lua_gettop(lua)) {
    case 0: lua_pushnumber(lua, random); break;
    case 1: {
        int most = luaL_checkint(lua, 1);
        luaL_argcheck(lua, 1 <= most, 1, "interval is empty");
        lua_pushnumber(lua, floor(random * most) + 1);
        break;
    }
    case 2: {
        int least = luaL_checkint(lua, 1);
        int most = luaL_checkint(lua, 2);
        luaL_argcheck(lua, least <= most, 2, "interval is empty");
        lua_pushnumber(lua, floor(random * ((lua_Number)most - least + 1)) + least);
        break;
    }
    default: return luaL_error(lua, "wrong number of arguments");
    }
    return 1;
}

static int math_randomseed(lua_State *lua) {
    uint32_t seed = (uint32_t)luaL_checkint(lua, 1);
    larder_script_of(lua)->random = ((uint64_t)seed << 16) | 0x330E;
    larder_script_of(lua)->is_seeded = true;
    return 0;
}

// MARK: Opening

static void open_library(lua_State *lua, const char *name, lua_CFunction open) {
    lua_pushcfunction(lua, open);
    lua_pushstring(lua, name);
    lua_call(lua, 1, 0);
}

/// Copies a global into the table on top.
static void take(lua_State *lua, const char *name) {
    lua_getglobal(lua, name);
    lua_setfield(lua, -2, name);
}

/// Protects the library on top, and stores it in the table of globals, which is below it on the stack.
static void set_library(lua_State *lua, const char *name) {
    protect(lua);
    lua_setfield(lua, -2, name);
}

static void add_libraries(lua_State *lua) {
    lua_getglobal(lua, "string");
    larder_script_bound_strings(lua);
    set_library(lua, "string");

    lua_getglobal(lua, "table");
    larder_script_bound_tables(lua);
    static const char *const changing[] = {"insert", "remove", "sort", "setn", NULL};
    for (int index = 0; changing[index] != NULL; index++) wrap(lua, changing[index], call_unless_protected);
    set_library(lua, "table");

    lua_getglobal(lua, "math");
    lua_pushcfunction(lua, math_random);
    lua_setfield(lua, -2, "random");
    lua_pushcfunction(lua, math_randomseed);
    lua_setfield(lua, -2, "randomseed");
    set_library(lua, "math");

    lua_getglobal(lua, "coroutine");
    set_library(lua, "coroutine");
#ifdef LARDER_HAS_JSON
    lua_pushcfunction(lua, luaopen_cjson);
    lua_call(lua, 0, 1);
    larder_script_bound_json(lua);
    static const char *const setting[] = {
        "encode_sparse_array", "encode_max_depth", "decode_max_depth", "encode_number_precision",
        "encode_invalid_numbers", "decode_invalid_numbers", NULL,
    };
    for (int index = 0; setting[index] != NULL; index++) wrap(lua, setting[index], call_and_spoil);
    set_library(lua, "cjson");
#endif
#ifdef LARDER_HAS_BIT
    open_library(lua, "bit", luaopen_bit);
    lua_getglobal(lua, "bit");
    larder_script_bound_bits(lua);
    set_library(lua, "bit");
#endif
}

static void add_base(lua_State *lua) {
    static const char *const names[] = {
        "_VERSION", "assert", "error", "gcinfo", "getmetatable", "ipairs", "rawequal", "select", "setmetatable",
        "tonumber", "tostring", "type", NULL,
    };
    for (int index = 0; names[index] != NULL; index++) take(lua, names[index]);
    static const luaL_Reg functions[] = {
        {"pcall", protected_call}, {"xpcall", protected_call_with_handler}, {"loadstring", load_string},
        {"load", load_function}, {"collectgarbage", collect_garbage}, {"unpack", unpack}, {NULL, NULL},
    };
    for (const luaL_Reg *function = functions; function->name != NULL; function++) {
        lua_pushcfunction(lua, function->func);
        lua_setfield(lua, -2, function->name);
    }
    static const char *const reading[] = {"next", "rawget", NULL};
    for (int index = 0; reading[index] != NULL; index++) {
        take(lua, reading[index]);
        wrap(lua, reading[index], call_with_shown);
    }
    lua_getglobal(lua, "pairs");
    lua_getfield(lua, -2, "next");
    lua_pushcclosure(lua, pairs, 2);
    lua_setfield(lua, -2, "pairs");
    take(lua, "rawset");
    wrap(lua, "rawset", call_unless_protected);
}

/// Protects the metatable that all strings share: scripts must not change it, or get at the real library through it.
static void protect_strings(lua_State *lua) {
    lua_pushliteral(lua, "");
    lua_getmetatable(lua, -1);
    lua_newtable(lua);
    lua_getfield(lua, -4, "string");
    lua_setfield(lua, -2, "__index");
    protect(lua);
    lua_setfield(lua, -2, "__metatable");
    lua_pop(lua, 2);
}

/// Makes reading an unknown name of the table on top an error instead of nil.
static void refuse_unknown_names(lua_State *lua) {
    lua_createtable(lua, 0, 1);
    lua_pushcfunction(lua, refuse_unknown);
    lua_setfield(lua, -2, "__index");
    lua_setmetatable(lua, -2);
}

/// Pushes a protected table with redis.*.
static void push_commands(lua_State *lua, const char *version, int version_number, bool is_for_functions) {
    lua_newtable(lua);
    larder_script_add_commands(lua, is_for_functions);
    larder_script_add_log(lua, version, version_number);
    protect(lua);
}

/// Pushes a copy of the table on top.
static void copy_table(lua_State *lua) {
    lua_newtable(lua);
    lua_pushnil(lua);
    while (lua_next(lua, -3) != 0) {
        lua_pushvalue(lua, -2);
        lua_insert(lua, -2);
        lua_rawset(lua, -4);
    }
}

/// Sets the globals of functions of libraries, and of libraries while they register functions. The table on top has the
/// globals that both share with scripts.
static void add_function_globals(lua_State *lua, const char *version, int version_number) {
    larder_script_state *state = larder_script_of(lua);
    copy_table(lua);
    push_commands(lua, version, version_number, true);
    lua_setfield(lua, -2, "redis");
    refuse_unknown_names(lua);
    state->function_globals = luaL_ref(lua, LUA_REGISTRYINDEX);

    lua_newtable(lua);
    lua_newtable(lua);
    larder_script_add_registration(lua, version, version_number);
    refuse_unknown_names(lua);
    protect(lua);
    lua_setfield(lua, -2, "redis");
    refuse_unknown_names(lua);
    state->library_globals = luaL_ref(lua, LUA_REGISTRYINDEX);
}

void larder_script_open(lua_State *lua, const char *version, int version_number) {
    larder_script_state *state = larder_script_of(lua);
    open_library(lua, "", luaopen_base);
    open_library(lua, LUA_TABLIBNAME, luaopen_table);
    open_library(lua, LUA_STRLIBNAME, luaopen_string);
    open_library(lua, LUA_MATHLIBNAME, luaopen_math);

    lua_newtable(lua);
    add_base(lua);
    add_libraries(lua);
    protect_strings(lua);

    // Scripts see all globals through this one table. Its metatable selects the table of globals that it shows.
    lua_pushvalue(lua, -1);
    protect(lua);
    lua_getmetatable(lua, -1);
    state->shown = luaL_ref(lua, LUA_REGISTRYINDEX);
    lua_pushvalue(lua, -1);
    lua_setfield(lua, -3, "_G");
    lua_replace(lua, LUA_GLOBALSINDEX);
    lua_pushliteral(lua, "__index");
    state->index_name = luaL_ref(lua, LUA_REGISTRYINDEX);

    add_function_globals(lua, version, version_number);
    push_commands(lua, version, version_number, false);
    lua_setfield(lua, -2, "redis");
    lua_newtable(lua);
    lua_setfield(lua, -2, "KEYS");
    lua_newtable(lua);
    lua_setfield(lua, -2, "ARGV");
    refuse_unknown_names(lua);
    state->globals = luaL_ref(lua, LUA_REGISTRYINDEX);
}
