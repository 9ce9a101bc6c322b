// Bounded replacements for functions of Lua's libraries that take unbounded time or stack.
//
// The interpreter asks the host after a number of instructions whether to end the script, but not during an instruction
// that runs in C. So a function that may take long in C refuses the work, or asks the host itself.
#include "state.h"

#include <string.h>

/// The maximum number of steps of a search in the worst case: some seconds.
#define SEARCH_STEPS_MAX 1e9
/// If a search may take more steps than this, the host is notified before it.
#define SEARCH_STEPS_HEAVY 1e6
/// The maximum number of quantifiers, captures and similar items of a pattern: each may be one level of recursion in C.
enum { PATTERN_ITEMS_MAX = 200 };

/// The parts of a pattern that determine how long matching takes.
typedef struct {
    /// Items that repeat, and may have to try all lengths because a later item may fail.
    int repeats;
    /// Optional items: each doubles the number of attempts.
    int options;
    /// Repeating and optional items, and captures.
    int items;
} pattern_cost;

static pattern_cost cost_of(const char *pattern, size_t count) {
    pattern_cost cost = {0, 0, 0};
    bool is_in_set = false, ends_with_repeat = false;
    for (size_t index = 0; index < count; index++) {
        char byte = pattern[index];
        bool is_repeat = false;
        if (byte == '%') {
            index += 1;
            is_repeat = !is_in_set && index < count && pattern[index] == 'b';
        } else if (is_in_set) {
            // A bracket directly after the opening bracket, or after its ^, belongs to the set.
            if (byte == ']') is_in_set = false;
        } else if (byte == '[') {
            is_in_set = true;
            if (index + 1 < count && pattern[index + 1] == '^') index += 1;
            if (index + 1 < count && pattern[index + 1] == ']') index += 1;
        } else if (byte == '*' || byte == '+' || byte == '-') {
            is_repeat = true;
        } else if (byte == '?') {
            cost.options += 1;
            cost.items += 1;
        } else if (byte == '(' || byte == ')') {
            cost.items += 1;
        }
        if (is_repeat) {
            cost.repeats += 1;
            cost.items += 1;
        }
        // The end of a capture never fails.
        if (byte != ')' || is_in_set) ends_with_repeat = is_repeat;
    }
    if (ends_with_repeat) cost.repeats -= 1;
    return cost;
}

/// The number of steps of the matcher in the worst case: at each position it tries all lengths of each repeating item,
/// and each optional item with and without it.
static double steps_at_worst(lua_State *lua, const char *pattern, size_t pattern_count, size_t count) {
    pattern_cost cost = cost_of(pattern, pattern_count);
    if (cost.items > PATTERN_ITEMS_MAX) luaL_error(lua, "pattern too complex");
    double length = (double)count + 1;
    double steps = pattern_count > 0 && pattern[0] == '^' ? 1 : length;
    for (int index = 0; index < cost.repeats && steps <= SEARCH_STEPS_MAX; index++) steps *= length;
    for (int index = 0; index < cost.options && steps <= SEARCH_STEPS_MAX; index++) steps *= 2;
    return steps < length ? length : steps;
}

static void check_search(lua_State *lua, bool may_be_plain) {
    size_t count, pattern_count;
    luaL_checklstring(lua, 1, &count);
    const char *pattern = luaL_checklstring(lua, 2, &pattern_count);
    bool is_plain = may_be_plain && lua_toboolean(lua, 4);
    // A search for plain text compares it, several bytes at a time, at each position where it may begin.
    double steps = (double)count * (double)pattern_count / 16;
    if (!is_plain) {
        double others = steps_at_worst(lua, pattern, pattern_count, count);
        if (others > steps) steps = others;
    }
    if (steps <= SEARCH_STEPS_HEAVY) return;
    if (steps > SEARCH_STEPS_MAX) {
        luaL_error(lua, "search may take too long: a text of %d bytes, a pattern of %d", (int)count, (int)pattern_count);
    }
    larder_script_weigh(lua);
}

static int find(lua_State *lua) {
    check_search(lua, true);
    return larder_script_forward(lua);
}

static int match(lua_State *lua) {
    check_search(lua, false);
    return larder_script_forward(lua);
}

static int repeat(lua_State *lua) {
    size_t count;
    luaL_checklstring(lua, 1, &count);
    lua_Number times = luaL_checknumber(lua, 2);
    if (count == 0 || !(times >= 1)) {
        lua_pushliteral(lua, "");
        return 1;
    }
    if ((double)count * times > (double)larder_script_of(lua)->bytes_max) {
        return luaL_error(lua, "resulting string too large");
    }
    if ((double)count * times > LARDER_SCRIPT_HEAVY_BYTES) larder_script_weigh(lua);
    return larder_script_forward(lua);
}

static void replace(lua_State *lua, const char *name, lua_CFunction wrapper) {
    lua_getfield(lua, -1, name);
    lua_pushcclosure(lua, wrapper, 1);
    lua_setfield(lua, -2, name);
}

void larder_script_bound_strings(lua_State *lua) {
    replace(lua, "find", find);
    static const char *const matching[] = {"match", "gmatch", "gfind", "gsub", NULL};
    for (int index = 0; matching[index] != NULL; index++) replace(lua, matching[index], match);
    replace(lua, "rep", repeat);
    // Remove string.dump, whose result loadstring refuses.
    lua_pushnil(lua);
    lua_setfield(lua, -2, "dump");
}

// MARK: Tables

/// Compares like `<`, and asks the host now and then whether to end.
static int compare(lua_State *lua) {
    int *count = lua_touserdata(lua, lua_upvalueindex(1));
    if (++*count % 1024 == 0) larder_script_check(lua);
    lua_pushboolean(lua, lua_lessthan(lua, 1, 2));
    return 1;
}

static int sort(lua_State *lua) {
    luaL_checktype(lua, 1, LUA_TTABLE);
    // Only for long tables, because each comparison is a call.
    if (lua_isnoneornil(lua, 2) && lua_objlen(lua, 1) > 1000) {
        lua_settop(lua, 1);
        int *count = lua_newuserdata(lua, sizeof *count);
        *count = 0;
        lua_pushcclosure(lua, compare, 1);
    }
    return larder_script_forward(lua);
}

/// Before more elements than this are moved, the host is asked whether to continue.
enum { MOVES_HEAVY = 10000 };
/// The maximum number of elements to move at a time: more than fit into memory, and less than a second.
#define MOVES_MAX 1e8

static void check_moves(lua_State *lua, double moves) {
    if (moves > MOVES_MAX) luaL_error(lua, "position out of bounds");
    if (moves > MOVES_HEAVY) larder_script_check(lua);
}

/// Lua moves an element for each position after the given one, even if that is far below the first element.
static int insert(lua_State *lua) {
    if (lua_istable(lua, 1) && lua_gettop(lua) == 3) {
        int position = luaL_checkint(lua, 2);
        check_moves(lua, (double)lua_objlen(lua, 1) + 1 - (double)position);
    }
    return larder_script_forward(lua);
}

static int remove_element(lua_State *lua) {
    if (lua_istable(lua, 1) && lua_gettop(lua) > 1) {
        check_moves(lua, (double)lua_objlen(lua, 1) - (double)luaL_checkint(lua, 2));
    }
    return larder_script_forward(lua);
}

void larder_script_bound_tables(lua_State *lua) {
    replace(lua, "sort", sort);
    replace(lua, "insert", insert);
    replace(lua, "remove", remove_element);
}

// MARK: Bits

/// bit.tohex limits the number of digits to eight, but fails to do so for the smallest integer, which has no positive
/// counterpart (CVE-2024-31449). So this function limits the number first.
static int to_hexadecimal(lua_State *lua) {
    if (lua_gettop(lua) >= 2) {
        lua_Number digits = luaL_checknumber(lua, 2);
        lua_settop(lua, 2);
        lua_pushnumber(lua, digits >= 8 ? 8 : digits <= -8 ? -8 : digits == digits ? digits : 0);
        lua_replace(lua, 2);
    }
    return larder_script_forward(lua);
}

void larder_script_bound_bits(lua_State *lua) { replace(lua, "tohex", to_hexadecimal); }
