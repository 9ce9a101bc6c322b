// snappy's C API as the system installs it. No logic lives here.
#ifndef LARDER_CSNAPPY_SHIM_H
#define LARDER_CSNAPPY_SHIM_H

#include <snappy-c.h>

#endif
