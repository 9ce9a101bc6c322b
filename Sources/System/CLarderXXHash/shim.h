// xxHash as the system installs it. No logic lives here.
#ifndef LARDER_CXXHASH_SHIM_H
#define LARDER_CXXHASH_SHIM_H

#include <xxhash.h>

#endif
