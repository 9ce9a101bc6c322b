#ifndef LARDER_PREFETCH_H
#define LARDER_PREFETCH_H

/// Prefetches the cache line at `address`, which need not be valid. Swift has no function for this.
static inline void larder_prefetch(const void *address) { __builtin_prefetch(address); }

#endif
