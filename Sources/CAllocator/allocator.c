#include "allocator.h"

#include <jemalloc/jemalloc.h>
#include <stddef.h>

// jemalloc reads this name when it starts (jemalloc(3), "Tuning"): a few arenas, because entries are freed by other
// threads than those that made them, and what is free goes back to the system after two seconds, on a thread of its own.
const char *malloc_conf = "narenas:4,background_thread:true,dirty_decay_ms:2000,muzzy_decay_ms:0";

const char *larder_allocator_version(void) {
    const char *version = "";
    size_t size = sizeof version;
    mallctl("version", &version, &size, NULL, 0);
    return version;
}
