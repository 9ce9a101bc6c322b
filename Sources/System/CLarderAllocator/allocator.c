#include "allocator.h"

#include <jemalloc/jemalloc.h>
#include <stddef.h>

// jemalloc reads this variable when it starts (jemalloc(3), "Tuning"). There are few arenas, because entries are freed
// by other threads than those that allocated them. Unused memory is returned to the system after two seconds, by a
// separate thread (larder_allocator_start_thread). Only one such thread: if the system allows no more threads, jemalloc
// retries to start further ones continuously, and writes a line each time.
const char *malloc_conf = "narenas:4,max_background_threads:1,dirty_decay_ms:2000,muzzy_decay_ms:0";

bool larder_allocator_start_thread(void) {
    bool enabled = true;
    return mallctl("background_thread", NULL, NULL, &enabled, sizeof enabled) == 0;
}

const char *larder_allocator_version(void) {
    const char *version = "";
    size_t size = sizeof version;
    mallctl("version", &version, &size, NULL, 0);
    return version;
}
