/* The runtime of the generated C: words, tables, and the packet, in the kernel (tc/eBPF) or in a process.
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
typedef unsigned __int128 u128 __attribute__((aligned(8)));
typedef __int128 s128 __attribute__((aligned(8)));

#define INLINE inline __attribute__((always_inline))
#ifdef __bpf__
#define FUNCTION __attribute__((noinline)) /* verified once, not at each call */
#else
#define HOT __attribute__((hot)) /* else gcc takes what is behind many tests for rare, and makes it short, not quick */
#define FUNCTION static HOT __attribute__((noinline))
#endif

/* Clang omits the test of an index whose range it knows, or computes an address before the test; the kernel's verifier
 * needs the test. These macros hide the range from clang: of any number; of an index before its test; and after it. */
#ifdef __bpf__
#define CHECKED(number) __asm__ volatile("" : "+r"(number))
#define UNKNOWN(index) __asm__("" : "+r"(index))
#define BELOW(index, size) __asm__("" : "+r"(index) : "i"(size)) /* the size keeps different tests from being merged */
#else
#define CHECKED(number)
#define UNKNOWN(index)
#define BELOW(index, size)
#endif

/* Neighbours in memory, one after the other: unrolled in the kernel, by vector instructions in a process. */
#ifdef __bpf__
#define EACH(nth, count) _Pragma("clang loop unroll(full)") for (u32 nth = 0; nth < count; nth++)
#else
#define EACH(nth, count) _Pragma("GCC ivdep") for (u32 nth = 0; nth < count; nth++)
#endif

#define TAKEN(argument) __asm__ volatile("" : : "r"(argument)) /* clang passes it even if the function ignores it */
#define WHOLE static __attribute__((used)) /* not split into its members, which clang would describe wrongly */

/* ---- numbers: BMv2 shifts by any amount ---- */

static INLINE u64 shift_left(u64 value, u64 by) { return by < 64 ? value << by : 0; }
static INLINE u64 shift_right(u64 value, u64 by) { return by < 64 ? value >> by : 0; }
static INLINE u64 shift_right_signed(s64 value, u64 by) { return (u64)(value >> (by < 63 ? by : 63)); }
static INLINE u64 saturate(s64 value, s64 low, s64 high) {
    return (u64)(value < low ? low : value > high ? high : value);
}

/* Wide words, without the library that multiplies them and shifts them by variable amounts. */
static INLINE u128 pair(u64 high, u64 low) { return (u128)high << 64 | low; }
static INLINE u128 shift_left_wide(u128 value, u64 by) {
    u64 low = value, high = value >> 64;
    return by >= 64 ? pair(shift_left(low, by - 64), 0) : pair(high << by | (low >> 1) >> (63 - by), low << by);
}
static INLINE u128 filled_from_the_left(u64 fill, u128 value, u64 by) {
    u64 low = value, high = value >> 64;
    if (by >= 128)
        return fill ? ~(u128)0 : 0;
    if (by >= 64)
        return pair(fill, high >> (by - 64) | (fill << 1) << (127 - by));
    return pair(high >> by | (fill << 1) << (63 - by), low >> by | (high << 1) << (63 - by));
}
static INLINE u128 shift_right_wide(u128 value, u64 by) { return filled_from_the_left(0, value, by); }
static INLINE u128 shift_right_signed_wide(u128 value, u64 by) {
    return filled_from_the_left(value >> 127 ? ~0ull : 0, value, by);
}
static INLINE u128 saturate_wide(s128 value, s128 low, s128 high) {
    return (u128)(value < low ? low : value > high ? high : value);
}
static INLINE u128 upper(u64 high) {
    __asm__("" : "+r"(high)); /* else clang turns its computation into a multiplication of wide words */
    return pair(high, 0);
}
static INLINE u128 multiply_words(u64 one, u64 other) {
    u64 low = (u32)one * (u64)(u32)other, high = (one >> 32) * (other >> 32);
    u64 middle = (one >> 32) * (u32)other + (low >> 32), rest = (u32)one * (other >> 32) + (u32)middle;
    return upper(high + (middle >> 32) + (rest >> 32)) | (rest << 32 | (u32)low);
}
static INLINE u128 multiply_wide(u128 one, u128 other) {
    u64 a = one, b = other;
    return multiply_words(a, b) + upper((u64)(one >> 64) * b + a * (u64)(other >> 64));
}

/* `count` bytes, at most `most` (a constant). */
static INLINE void copy_bytes(u8 *to, const u8 *from, u32 count, u32 most) {
    for (u64 i = 0; i < most && i < count; i++) {
        CHECKED(i); /* this also prevents a call of memcpy */
        to[i] = from[i];
    }
}

#define SWAP(one, other) \
    do { \
        u8 kept_[sizeof(one)]; \
        __builtin_memcpy(kept_, &(one), sizeof kept_); \
        __builtin_memcpy(&(one), &(other), sizeof kept_); \
        __builtin_memcpy(&(other), kept_, sizeof kept_); \
    } while (0)

/* ---- bytes: fields are big-endian and at any address ---- */

#ifdef __bpf__
#define AT(type, place) (*(type *)(place)) /* the kernel's verifier allows unaligned access where it is safe */
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

/* Words of 32 bits in a row. */
static INLINE void load_words(u32 *to, const u8 *from, u32 count) {
    EACH(nth, count) to[nth] = load_4(from + 4 * nth);
}
static INLINE void store_words(u8 *to, const u32 *from, u32 count) {
    EACH(nth, count) store_4(to + 4 * nth, from[nth]);
}

/* ---- multicast groups ---- */

struct key_groups { u64 words[1]; };

struct entry_groups {
    u32 count;
    struct { u16 port, copy; } replicas[MAX_REPLICAS];
} __attribute__((aligned(8)));

#define MAX_GROUPS 65536

#include "tables.h"
#ifdef HASHED_BYTES
#include "hashes.h"
#endif
#ifdef METER_RATES
#include "meters.h"
#endif

#ifdef __bpf__
#include "kernel.h"
#else
#include "process.h"
#endif

static INLINE u64 random_number(u64 *state, u64 least, u64 most) {
    u64 word = random_word(state), count = most - least + 1;
    return count ? least + word % count : word;
}

TABLE(groups, struct key_groups, struct entry_groups, MAX_GROUPS)
