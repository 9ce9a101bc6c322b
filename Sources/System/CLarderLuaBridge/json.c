// cjson. Lua's memory limit does not include cjson's buffers, so the size of the output is computed before writing.
#include "state.h"

#include <string.h>

/// The maximum size of JSON that a script may write at a time, in bytes: a quarter of its memory.
static size_t bytes_max(lua_State *lua) { return larder_script_of(lua)->bytes_max / 4; }

/// cjson refuses deeper tables by itself.
enum { DEPTH_MAX = 1100 };

typedef struct {
    size_t bytes, bytes_max, values;
} measure;

/// The size of a text as JSON in bytes, with quotes and escapes.
static size_t text_bytes(const char *text, size_t count) {
    size_t bytes = count + 2;
    for (size_t index = 0; index < count; index++) {
        unsigned char byte = (unsigned char)text[index];
        if (byte < 0x20 || byte == 0x7F) bytes += 5;
        else if (byte == '"' || byte == '\\' || byte == '/') bytes += 1;
    }
    return bytes;
}

/// Adds the size of the gaps in the table on top if it is written as an array: a null and a comma each.
static void add_gaps(lua_State *lua, measure *sum) {
    lua_Number last = 0;
    lua_pushnil(lua);
    while (lua_next(lua, -2)) {
        lua_pop(lua, 1);
        if (lua_type(lua, -1) == LUA_TNUMBER && lua_tonumber(lua, -1) > last) last = lua_tonumber(lua, -1);
    }
    // cjson does not treat a larger number as an index.
    sum->bytes += last > INT32_MAX ? 0 : (size_t)last * 5;
}

/// Adds the maximum size of the value on top, and leaves the value there.
static void add(lua_State *lua, measure *sum, int depth) {
    sum->values += 1;
    if (sum->values % 1024 == 0) larder_script_check(lua);
    if (sum->bytes > sum->bytes_max || depth > DEPTH_MAX) return;
    size_t count;
    switch (lua_type(lua, -1)) {
    case LUA_TSTRING: {
        const char *text = lua_tolstring(lua, -1, &count);
        if (count > LARDER_SCRIPT_HEAVY_BYTES) larder_script_weigh(lua);
        sum->bytes += text_bytes(text, count);
        return;
    }
    case LUA_TTABLE:
        luaL_checkstack(lua, 4, "table nested too deep");
        sum->bytes += 2;
        if (larder_script_of(lua)->writes_sparse_arrays) add_gaps(lua, sum);
        lua_pushnil(lua);
        while (lua_next(lua, -2)) {
            // A comma, and the text of a name that is a number.
            sum->bytes += 2;
            if (lua_type(lua, -2) == LUA_TSTRING) {
                const char *name = lua_tolstring(lua, -2, &count);
                sum->bytes += text_bytes(name, count);
            } else {
                sum->bytes += 32;
            }
            add(lua, sum, depth + 1);
            lua_pop(lua, 1);
        }
        return;
    default: sum->bytes += 32;
    }
}

static int encode(lua_State *lua) {
    if (lua_gettop(lua) == 1) {
        measure sum = {0, bytes_max(lua), 0};
        add(lua, &sum, 0);
        if (sum.bytes > sum.bytes_max) {
            return luaL_error(lua, "the JSON would be longer than %d bytes", (int)sum.bytes_max);
        }
        if (sum.bytes > LARDER_SCRIPT_HEAVY_BYTES) larder_script_weigh(lua);
    }
    return larder_script_forward(lua);
}

/// Sets when an array with gaps is written as an array. After a script has done so, the gaps are counted.
static int set_sparse_arrays(lua_State *lua) {
    if (lua_gettop(lua) > 0) larder_script_of(lua)->writes_sparse_arrays = true;
    return larder_script_forward(lua);
}

static int decode(lua_State *lua) {
    if (lua_type(lua, 1) == LUA_TSTRING && lua_objlen(lua, 1) > LARDER_SCRIPT_HEAVY_BYTES) larder_script_weigh(lua);
    return larder_script_forward(lua);
}

static void replace(lua_State *lua, const char *name, lua_CFunction wrapper) {
    lua_getfield(lua, -1, name);
    lua_pushcclosure(lua, wrapper, 1);
    lua_setfield(lua, -2, name);
}

/// Creates another module with its own settings, and with the same limits.
static int new_module(lua_State *lua) {
    lua_pushvalue(lua, lua_upvalueindex(1));
    lua_call(lua, 0, 1);
    larder_script_bound_json(lua);
    return 1;
}

void larder_script_bound_json(lua_State *lua) {
    // Do not let cjson keep its buffer between calls, because Lua does not count it.
    lua_getfield(lua, -1, "encode_keep_buffer");
    lua_pushboolean(lua, 0);
    lua_call(lua, 1, 0);
    lua_pushnil(lua);
    lua_setfield(lua, -2, "encode_keep_buffer");
    replace(lua, "encode", encode);
    replace(lua, "encode_sparse_array", set_sparse_arrays);
    replace(lua, "decode", decode);
    replace(lua, "new", new_module);
}
