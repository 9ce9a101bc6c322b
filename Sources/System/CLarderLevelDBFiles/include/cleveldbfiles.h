#ifndef LARDER_LEVELDB_FILES_H
#define LARDER_LEVELDB_FILES_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct leveldb_cache_t;
struct leveldb_env_t;
struct leveldb_t;
struct leveldb_filterpolicy_t;
struct leveldb_readoptions_t;

/// LevelDB's default environment, but for reads that return less than there is, as POSIX allows: they go on until all of
/// it was read. LevelDB itself takes the first short read of a log or a manifest for its end, and deletes the file.
///
/// One for the whole process, never to be destroyed; null if this LevelDB's C environment is not the structure that is known
/// here: then its own is to be used. Thread-safe.
struct leveldb_env_t *larder_leveldb_environment(void);

/// LevelDB's block cache, but that it keeps no block that is longer than a sixteenth of its capacity: LevelDB's own keeps
/// sixteen of them, however long. To be destroyed with leveldb_cache_destroy(), after the databases.
struct leveldb_cache_t *larder_leveldb_cache(size_t capacity);

/// The bytes of the blocks that a cache from here keeps. Thread-safe.
size_t larder_leveldb_cache_bytes(const struct leveldb_cache_t *cache);

/// LevelDB's Bloom filter with so many bits for a key, as larder_leveldb_lacks() needs it. The files are those of LevelDB's
/// own. To be destroyed with leveldb_filterpolicy_destroy().
struct leveldb_filterpolicy_t *larder_leveldb_bloom_filter(int bits_per_key);

/// Whether LevelDB knows, from its memory and from the filters of its open tables, that it has no value of a key: 1, or 0
/// if it has one or would have to read a file to tell. It reads no file. LevelDB's memory may have a value, which is then
/// copied. For databases with the environment and the filter from here; with any other the answer is that of a read.
/// Thread-safe.
int larder_leveldb_lacks(
    struct leveldb_t *database, const struct leveldb_readoptions_t *options, const char *key, size_t key_length);

/// Called on LevelDB's own thread with the directory of a database: with `begins` 1 when the tables of a merge, or those of
/// its memory, are about to take the place of others; with 0 when LevelDB knows which files are not needed any more, and is
/// about to remove them. In between LevelDB does nothing that takes long, and reads do not need what it holds.
typedef void (*larder_leveldb_merge_hook)(const char *directory, int begins);

/// Sets what is called for all databases with the environment from here. For the whole process. Thread-safe.
void larder_leveldb_on_merge(larder_leveldb_merge_hook hook);

#ifdef __cplusplus
}
#endif

#endif
