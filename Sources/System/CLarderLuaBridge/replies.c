// Converts RESP to values of Lua and back, by the rules of Redis.
#include "state.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// MARK: Encoded replies to values

typedef struct {
    const uint8_t *next, *end;
} reader;

/// Returns the bytes up to the next line end, which is skipped. Replies are complete, because the host made them.
static const uint8_t *line(reader *reader, size_t *count) {
    const uint8_t *start = reader->next;
    const uint8_t *found = memchr(start, '\r', (size_t)(reader->end - start));
    if (found == NULL) found = reader->end;
    *count = (size_t)(found - start);
    reader->next = reader->end - found >= 2 ? found + 2 : reader->end;
    return start;
}

static long long number(const uint8_t *digits, size_t count) {
    bool is_negative = count > 0 && digits[0] == '-';
    unsigned long long value = 0;
    for (size_t index = is_negative; index < count; index++) value = value * 10 + (unsigned long long)(digits[index] - '0');
    return is_negative ? (long long)(0 - value) : (long long)value;
}

static void push_value(lua_State *lua, reader *reader);

/// Pushes {name = the text of a line}.
static void push_named(lua_State *lua, const char *name, const uint8_t *text, size_t count) {
    lua_createtable(lua, 0, 1);
    lua_pushlstring(lua, (const char *)text, count);
    lua_setfield(lua, -2, name);
}

/// Pushes {err = the error}: its first word is the code.
static void push_reply_error(lua_State *lua, const uint8_t *text, size_t count) {
    lua_createtable(lua, 0, 2);
    if (memchr(text, ' ', count) == NULL) {
        lua_pushliteral(lua, "ERR ");
        lua_pushlstring(lua, (const char *)text, count);
        lua_concat(lua, 2);
    } else {
        lua_pushlstring(lua, (const char *)text, count);
    }
    lua_setfield(lua, -2, "err");
    lua_pushboolean(lua, 1);
    lua_setfield(lua, -2, "ignore_error_stats_update");
}

static void push_array(lua_State *lua, reader *reader, long long count) {
    if (count < 0) {
        lua_pushboolean(lua, 0);
        return;
    }
    // Each element has at least three bytes.
    long long most = (reader->end - reader->next) / 3;
    lua_createtable(lua, (int)(count < most ? count : most), 0);
    for (long long index = 1; index <= count && reader->next < reader->end; index++) {
        push_value(lua, reader);
        lua_rawseti(lua, -2, (int)index);
    }
}

static void push_map(lua_State *lua, reader *reader, long long count) {
    lua_createtable(lua, 0, 1);
    lua_newtable(lua);
    for (long long index = 0; index < count && reader->next < reader->end; index++) {
        push_value(lua, reader);
        push_value(lua, reader);
        lua_rawset(lua, -3);
    }
    lua_setfield(lua, -2, "map");
}

static void push_set(lua_State *lua, reader *reader, long long count) {
    lua_createtable(lua, 0, 1);
    lua_newtable(lua);
    for (long long index = 0; index < count && reader->next < reader->end; index++) {
        push_value(lua, reader);
        lua_pushboolean(lua, 1);
        lua_rawset(lua, -3);
    }
    lua_setfield(lua, -2, "set");
}

static void push_verbatim(lua_State *lua, const uint8_t *text, size_t count) {
    size_t skipped = count < 4 ? count : 4;
    lua_createtable(lua, 0, 1);
    lua_createtable(lua, 0, 2);
    lua_pushlstring(lua, (const char *)text + skipped, count - skipped);
    lua_setfield(lua, -2, "string");
    lua_pushlstring(lua, (const char *)text, skipped < 3 ? skipped : 3);
    lua_setfield(lua, -2, "format");
    lua_setfield(lua, -2, "verbatim_string");
}

static void push_double(lua_State *lua, const uint8_t *text, size_t count) {
    char copy[64];
    size_t most = count < sizeof copy - 1 ? count : sizeof copy - 1;
    memcpy(copy, text, most);
    copy[most] = 0;
    lua_createtable(lua, 0, 1);
    lua_pushnumber(lua, strtod(copy, NULL));
    lua_setfield(lua, -2, "double");
}

static void push_value(lua_State *lua, reader *reader) {
    if (reader->next >= reader->end) {
        lua_pushnil(lua);
        return;
    }
    luaL_checkstack(lua, 4, "a reply is nested too deep");
    uint8_t type = *reader->next++;
    size_t count;
    const uint8_t *text = line(reader, &count);
    switch (type) {
    case '+': push_named(lua, "ok", text, count); return;
    case '-': push_reply_error(lua, text, count); return;
    case ':': lua_pushnumber(lua, (lua_Number)number(text, count)); return;
    case '*':
    case '>': push_array(lua, reader, number(text, count)); return;
    case '%': push_map(lua, reader, number(text, count)); return;
    case '~': push_set(lua, reader, number(text, count)); return;
    case '#': lua_pushboolean(lua, count > 0 && text[0] == 't'); return;
    case ',': push_double(lua, text, count); return;
    case '(': push_named(lua, "big_number", text, count); return;
    case '$':
    case '=': {
        long long length = number(text, count);
        if (length < 0) {
            lua_pushboolean(lua, 0);
            return;
        }
        size_t bytes = (size_t)length;
        size_t rest = (size_t)(reader->end - reader->next);
        if (bytes > rest) bytes = rest;
        if (type == '$') {
            lua_pushlstring(lua, (const char *)reader->next, bytes);
        } else {
            push_verbatim(lua, reader->next, bytes);
        }
        reader->next += bytes + 2 < rest ? bytes + 2 : rest;
        return;
    }
    default: lua_pushnil(lua); return;
    }
}

void larder_script_push_reply(lua_State *lua, const uint8_t *bytes, size_t count) {
    reader reader = {bytes, bytes + count};
    push_value(lua, &reader);
}

// MARK: Values to encoded replies

/// Deeper replies are refused.
enum { DEPTH_MAX = 1000 };

typedef struct {
    larder_script_state *state;
    /// The number of values so far: the same table may occur in many places.
    size_t values;
    /// Why the reply cannot be encoded; null if it can.
    const char *failure;
} writer;

static void append(writer *writer, const void *bytes, size_t count) {
    if (writer->failure == NULL && !larder_script_append(writer->state, bytes, count)) {
        writer->failure = "ERR the script's reply is longer than a reply may be (--max-reply, --max-script-memory)";
    }
}

static void append_header(writer *writer, char type, long long value) {
    char text[32];
    append(writer, text, (size_t)snprintf(text, sizeof text, "%c%lld\r\n", type, value));
}

static void append_string(writer *writer, char type, const char *bytes, size_t count) {
    append_header(writer, type, (long long)count);
    append(writer, bytes, count);
    append(writer, "\r\n", 2);
}

/// Appends a line. Line ends within it become spaces.
static void append_line(writer *writer, char type, const char *bytes, size_t count) {
    append(writer, &type, 1);
    size_t start = writer->state->output_count;
    append(writer, bytes, count);
    if (writer->failure != NULL) return;
    for (size_t index = start; index < writer->state->output_count; index++) {
        uint8_t *byte = writer->state->output + index;
        if (*byte == '\r' || *byte == '\n') *byte = ' ';
    }
    append(writer, "\r\n", 2);
}

static void append_null(writer *writer) {
    if (writer->state->job->protocol == 3) append(writer, "_\r\n", 3);
    else append(writer, "$-1\r\n", 5);
}

static void append_integer(writer *writer, lua_Number value) {
    // Converting a number that does not fit is undefined in C; on the machines of Redis the result is the smallest
    // integer.
    bool fits = value >= -9223372036854775808.0 && value < 9223372036854775808.0;
    append_header(writer, ':', fits ? (long long)value : INT64_MIN);
}

static void append_double(writer *writer, double value) {
    char text[64];
    int count;
    if (isnan(value)) count = snprintf(text, sizeof text, "nan");
    else if (isinf(value)) count = snprintf(text, sizeof text, value > 0 ? "inf" : "-inf");
    else count = snprintf(text, sizeof text, "%.17g", value);
    if (writer->state->job->protocol == 3) append_line(writer, ',', text, (size_t)count);
    else append_string(writer, '$', text, (size_t)count);
}

static void append_value(lua_State *lua, writer *writer, int depth);

/// Pushes a field of the table on top, without metamethods, if it has this type; otherwise pushes nothing.
static bool has_field(lua_State *lua, const char *name, int type) {
    lua_pushstring(lua, name);
    lua_rawget(lua, -2);
    if (lua_type(lua, -1) == type) return true;
    lua_pop(lua, 1);
    return false;
}

static void append_verbatim(lua_State *lua, writer *writer) {
    size_t count, format_count;
    const char *format = NULL, *text = NULL;
    if (has_field(lua, "format", LUA_TSTRING)) {
        format = lua_tolstring(lua, -1, &format_count);
        lua_pushliteral(lua, "string");
        lua_rawget(lua, -3);
        if (lua_type(lua, -1) == LUA_TSTRING) text = lua_tolstring(lua, -1, &count);
    }
    if (text == NULL) {
        append_header(writer, '*', 0);
        return;
    }
    if (writer->state->job->protocol == 2) {
        append_string(writer, '$', text, count);
        return;
    }
    char code[4] = "   :";
    for (size_t index = 0; index < 3 && index < format_count; index++) code[index] = format[index];
    append_header(writer, '=', (long long)count + 4);
    append(writer, code, 4);
    append(writer, text, count);
    append(writer, "\r\n", 2);
}

/// Counts the entries of the table on top.
static long long count_entries(lua_State *lua) {
    long long count = 0;
    for (lua_pushnil(lua); lua_next(lua, -2); lua_pop(lua, 1)) count += 1;
    return count;
}

/// Appends the table on top as a map or a set.
static void append_entries(lua_State *lua, writer *writer, bool is_map, int depth) {
    bool is_new = writer->state->job->protocol == 3;
    long long count = count_entries(lua);
    if (is_map) append_header(writer, is_new ? '%' : '*', is_new ? count : 2 * count);
    else append_header(writer, is_new ? '~' : '*', count);
    lua_pushnil(lua);
    while (lua_next(lua, -2)) {
        if (writer->failure != NULL) return;
        lua_pushvalue(lua, -2);
        append_value(lua, writer, depth + 1);
        lua_pop(lua, 1);
        if (is_map) append_value(lua, writer, depth + 1);
        lua_pop(lua, 1);
    }
}

static void append_array(lua_State *lua, writer *writer, int depth) {
    int count = 0;
    for (;;) {
        lua_rawgeti(lua, -1, count + 1);
        bool is_end = lua_isnil(lua, -1);
        lua_pop(lua, 1);
        if (is_end) break;
        count += 1;
        if (count % 4096 == 0) larder_script_check(lua);
    }
    append_header(writer, '*', count);
    for (int index = 1; index <= count && writer->failure == NULL; index++) {
        lua_rawgeti(lua, -1, index);
        append_value(lua, writer, depth + 1);
        lua_pop(lua, 1);
    }
}

/// Appends a table: as the kind of reply that its fields specify, otherwise as an array up to its first nil.
static void append_table(lua_State *lua, writer *writer, int depth) {
    int top = lua_gettop(lua);
    size_t count;
    if (has_field(lua, "err", LUA_TSTRING)) {
        const char *text = lua_tolstring(lua, -1, &count);
        while (count > 0 && (text[count - 1] == '\r' || text[count - 1] == '\n')) count -= 1;
        append_line(writer, '-', text, count);
    } else if (has_field(lua, "ok", LUA_TSTRING)) {
        const char *text = lua_tolstring(lua, -1, &count);
        append_line(writer, '+', text, strlen(text));
    } else if (has_field(lua, "double", LUA_TNUMBER)) {
        append_double(writer, lua_tonumber(lua, -1));
    } else if (has_field(lua, "big_number", LUA_TSTRING)) {
        const char *text = lua_tolstring(lua, -1, &count);
        if (writer->state->job->protocol == 3) append_line(writer, '(', text, count);
        else append_string(writer, '$', text, count);
    } else if (has_field(lua, "verbatim_string", LUA_TTABLE)) {
        append_verbatim(lua, writer);
    } else if (has_field(lua, "map", LUA_TTABLE)) {
        append_entries(lua, writer, true, depth);
    } else if (has_field(lua, "set", LUA_TTABLE)) {
        append_entries(lua, writer, false, depth);
    } else {
        append_array(lua, writer, depth);
    }
    lua_settop(lua, top);
}

/// Appends the value on top, and leaves it there.
static void append_value(lua_State *lua, writer *writer, int depth) {
    if (depth > DEPTH_MAX || !lua_checkstack(lua, 8)) {
        writer->failure = "ERR the script's reply is nested deeper than 1000 levels";
    }
    if (writer->failure != NULL) return;
    writer->values += 1;
    if (writer->values % 1024 == 0) larder_script_check(lua);
    size_t count;
    switch (lua_type(lua, -1)) {
    case LUA_TSTRING: {
        const char *text = lua_tolstring(lua, -1, &count);
        append_string(writer, '$', text, count);
        return;
    }
    case LUA_TBOOLEAN:
        if (writer->state->protocol == 3 && writer->state->job->protocol == 3) {
            append(writer, lua_toboolean(lua, -1) ? "#t\r\n" : "#f\r\n", 4);
        } else if (writer->state->protocol == 3) {
            append_header(writer, ':', lua_toboolean(lua, -1));
        } else if (lua_toboolean(lua, -1)) {
            append(writer, ":1\r\n", 4);
        } else {
            append_null(writer);
        }
        return;
    case LUA_TNUMBER: append_integer(writer, lua_tonumber(lua, -1)); return;
    case LUA_TTABLE: append_table(lua, writer, depth); return;
    default: append_null(writer); return;
    }
}

void larder_script_encode(lua_State *lua, larder_script_state *state) {
    writer writer = {state, 0, NULL};
    state->output_count = 0;
    append_value(lua, &writer, 0);
    if (writer.failure != NULL) larder_script_output_error(state, writer.failure, strlen(writer.failure));
}
