#ifndef LARDER_ALLOCATOR_H
#define LARDER_ALLOCATOR_H

#include <stdbool.h>

/// Starts the thread that returns unused memory to the system. Returns false if that fails.
bool larder_allocator_start_thread(void);

/// The version of jemalloc that serves malloc in this process. A call of this function makes the linker keep jemalloc
/// even if it omits unneeded libraries.
const char *larder_allocator_version(void);

#endif
