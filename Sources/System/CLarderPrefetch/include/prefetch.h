#ifndef LARDER_PREFETCH_H
#define LARDER_PREFETCH_H

/// Has the processor fetch the cache line at `address`, which need not be valid, while the program goes on. Swift has no
/// way to say so.
static inline void larder_prefetch(const void *address) { __builtin_prefetch(address); }

#endif
