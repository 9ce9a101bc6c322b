// Lua 5.1 as the system installs it. No logic lives here.
#ifndef LARDER_CLUA_SHIM_H
#define LARDER_CLUA_SHIM_H

#include <lua.h>

#include <lauxlib.h>
#include <lualib.h>

#endif
