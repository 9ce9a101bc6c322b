// LevelDB's C API as the system installs it. No logic lives here.
#ifndef LARDER_CLEVELDB_SHIM_H
#define LARDER_CLEVELDB_SHIM_H

#include <leveldb/c.h>

#endif
