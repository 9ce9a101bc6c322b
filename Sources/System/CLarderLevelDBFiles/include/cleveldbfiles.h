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

/// LevelDB's default environment, except that short reads, which POSIX allows, are continued until everything is read.
/// LevelDB itself takes the first short read of a log or a manifest for the file's end, and deletes the file. It also maps
/// 30,000 tables into memory instead of 1,000. Mapped tables need no descriptors.
///
/// One object for the whole process, which is never destroyed. Null if the C environment of this LevelDB has an unknown
/// structure; use LevelDB's own environment then. Thread-safe.
struct leveldb_env_t *larder_leveldb_environment(void);

/// LevelDB's block cache, except that it keeps no block that is longer than a sixteenth of its capacity. LevelDB's own
/// cache keeps up to sixteen such blocks, however long. Destroy it with leveldb_cache_destroy(), after the databases.
struct leveldb_cache_t *larder_leveldb_cache(size_t capacity);

/// The size of the blocks in a cache from larder_leveldb_cache(), in bytes. Thread-safe.
size_t larder_leveldb_cache_bytes(const struct leveldb_cache_t *cache);

/// LevelDB's Bloom filter with a number of bits per key, as larder_leveldb_lacks() needs it. The files are the same as
/// with LevelDB's own filter. Destroy it with leveldb_filterpolicy_destroy().
struct leveldb_filterpolicy_t *larder_leveldb_bloom_filter(int bits_per_key);

/// Like leveldb_get(), but allocates only the returned copy: LevelDB's function allocates another one for each value.
/// Free the copy with leveldb_free(). Thread-safe.
char *larder_leveldb_get(
    struct leveldb_t *database, const struct leveldb_readoptions_t *options, const char *key, size_t key_length,
    size_t *value_length, char **error);

/// Returns 1 if LevelDB's memory and the filters of its open tables prove that it has no value of a key. Returns 0 if
/// it has a value, or would have to read a file to find out. Reads no file. If LevelDB's memory has a value, it is
/// copied once. Use it only with the environment and the filter of this header; with others this is a normal read.
/// Thread-safe.
int larder_leveldb_lacks(
    struct leveldb_t *database, const struct leveldb_readoptions_t *options, const char *key, size_t key_length);

/// Makes LevelDB's calls on this thread fail if they would have to read a table from its file, as long as `refuses` is
/// not 0. Works only with the environment of this header.
void larder_leveldb_refuse_reads(int refuses);

/// A function that is called on LevelDB's own thread with the directory of a database. `begins` is 1 when new tables,
/// from a merge or from LevelDB's memory, are about to replace others. It is 0 when LevelDB has found out which files
/// are obsolete, and is about to remove them. In between LevelDB does nothing that takes long, and holds nothing that
/// reads need.
typedef void (*larder_leveldb_merge_hook)(const char *directory, int begins);

/// Sets the hook for all databases with the environment of this header, in the whole process. Thread-safe.
void larder_leveldb_on_merge(larder_leveldb_merge_hook hook);

/// Makes the process write the path of a file to standard error before SIGBUS terminates it. LevelDB maps tables into
/// memory, so the process gets this signal if another program truncates a table. LevelDB cannot be kept from mapping
/// them without more descriptors and system calls. For a process of its own, not for a library.
void larder_leveldb_explain_bus_errors(void);

#ifdef __cplusplus
}
#endif

#endif
