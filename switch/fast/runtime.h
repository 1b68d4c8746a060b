/* What the generated C stands on: words, tables, and the packet, in the kernel (tc/eBPF) or in a process.
 *
 * The generated C keeps the packet being processed in the global `state`: a switch handles one packet at
 * a time, because all of its ports are steered to one CPU.
 */
#pragma once

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long s64;

#define INLINE inline __attribute__((always_inline))
#define WHOLE static __attribute__((used)) /* not split into its members, which clang would describe wrongly */

/* ---- numbers: BMv2 shifts by any amount ---- */

static INLINE u64 shift_left(u64 value, u64 by) { return by < 64 ? value << by : 0; }
static INLINE u64 shift_right(u64 value, u64 by) { return by < 64 ? value >> by : 0; }
static INLINE u64 shift_right_signed(s64 value, u64 by) { return (u64)(value >> (by < 63 ? by : 63)); }
static INLINE u64 saturate(s64 value, s64 low, s64 high) {
    return (u64)(value < low ? low : value > high ? high : value);
}

/* ---- bytes: fields are big-endian and stand anywhere ---- */

#ifdef __bpf__
#define AT(type, place) (*(type *)(place)) /* the kernel's verifier knows where unaligned access is fine */
#else
struct any16 { u16 value; } __attribute__((packed, may_alias));
struct any32 { u32 value; } __attribute__((packed, may_alias));
struct any64 { u64 value; } __attribute__((packed, may_alias));
typedef struct any16 at_u16;
typedef struct any32 at_u32;
typedef struct any64 at_u64;
#define AT(type, place) (((at_##type *)(place))->value)
#endif

static INLINE u64 load_1(const u8 *at) { return *at; }
static INLINE u64 load_2(const u8 *at) { return __builtin_bswap16(AT(u16, at)); }
static INLINE u64 load_4(const u8 *at) { return __builtin_bswap32(AT(u32, at)); }
static INLINE u64 load_8(const u8 *at) { return __builtin_bswap64(AT(u64, at)); }
static INLINE u64 load_3(const u8 *at) { return load_2(at) << 8 | load_1(at + 2); }
static INLINE u64 load_5(const u8 *at) { return load_4(at) << 8 | load_1(at + 4); }
static INLINE u64 load_6(const u8 *at) { return load_4(at) << 16 | load_2(at + 4); }
static INLINE u64 load_7(const u8 *at) { return load_4(at) << 24 | load_3(at + 4); }

static INLINE void store_1(u8 *at, u64 value) { *at = (u8)value; }
static INLINE void store_2(u8 *at, u64 value) { AT(u16, at) = __builtin_bswap16((u16)value); }
static INLINE void store_4(u8 *at, u64 value) { AT(u32, at) = __builtin_bswap32((u32)value); }
static INLINE void store_8(u8 *at, u64 value) { AT(u64, at) = __builtin_bswap64(value); }
static INLINE void store_3(u8 *at, u64 value) { store_2(at, value >> 8), store_1(at + 2, value); }
static INLINE void store_5(u8 *at, u64 value) { store_4(at, value >> 8), store_1(at + 4, value); }
static INLINE void store_6(u8 *at, u64 value) { store_4(at, value >> 16), store_2(at + 4, value); }
static INLINE void store_7(u8 *at, u64 value) { store_4(at, value >> 24), store_3(at + 4, value); }

/* ---- multicast groups ---- */

struct key_groups { u64 words[1]; };

struct entry_groups {
    u32 count;
    struct { u16 port, copy; } replicas[MAX_REPLICAS];
} __attribute__((aligned(8)));

#define MAX_GROUPS 65536

/* ---- tables: an array in front of each hash table, see fronts.py ---- */

static INLINE u32 place_of(const u64 *words, u32 count, u32 bits) {
    u64 place = 0;
    for (u32 i = 0; i < count; i++)
        place = (place ^ words[i]) * 0x9e3779b97f4a7c15ull;
    return place >> (64 - bits);
}
static INLINE int same_words(const u64 *one, const u64 *other, u32 count) {
    u64 difference = 0;
    for (u32 i = 0; i < count; i++)
        difference |= one[i] ^ other[i];
    return !difference;
}

#define FIND(symbol, bits) \
    static INLINE const struct entry_##symbol *find_##symbol(const struct key_##symbol *key) { \
        const struct front_##symbol *front = &memory.front_##symbol[place_of(key->words, sizeof *key / 8, bits)]; \
        if (front->filled && same_words(front->key.words, key->words, sizeof *key / 8)) \
            return &front->entry; \
        return front->behind ? table_find(&symbol, key) : 0; \
    }

#ifdef __bpf__
#include "kernel.h"
#else
#include "process.h"
#endif

TABLE(groups, struct key_groups, struct entry_groups, MAX_GROUPS)
