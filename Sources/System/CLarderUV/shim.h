// libuv as the system installs it. Inline wrappers only where Swift cannot call C.
#ifndef LARDER_CUV_SHIM_H
#define LARDER_CUV_SHIM_H

#include <uv.h>

#endif
