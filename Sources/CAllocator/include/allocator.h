#ifndef LARDER_ALLOCATOR_H
#define LARDER_ALLOCATOR_H

/// The version of jemalloc that serves malloc in this process. A program that calls this has it linked, whatever the
/// linker leaves out as unneeded.
const char *larder_allocator_version(void);

#endif
