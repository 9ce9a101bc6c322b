#ifndef LARDER_ALLOCATOR_H
#define LARDER_ALLOCATOR_H

#include <stdbool.h>

/// Starts the thread that gives free memory back to the system; false if there is none.
bool larder_allocator_start_thread(void);

/// The version of jemalloc that serves malloc in this process. A program that calls this has it linked, whatever the
/// linker leaves out as unneeded.
const char *larder_allocator_version(void);

#endif
