/* Rows of big-endian words, their bytes swapped by vector instructions where the processor has them. */
#pragma once

#define SWAP_WORDS(qualities, name) \
    qualities static void name(u8 *restrict to, const u8 *restrict from, u32 count) { \
        for (u32 nth = 0; nth < count; nth++) \
            store_4(to + 4 * nth, AT(u32, from + 4 * nth)); \
    }

SWAP_WORDS(, swap_each)
#ifdef __x86_64__
SWAP_WORDS(__attribute__((target("avx2"), optimize("O3"))), swap_vectors)
#endif

static INLINE void swap_words(u8 *to, const u8 *from, u32 count) {
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx2")) {
        swap_vectors(to, from, count);
        return;
    }
#endif
    swap_each(to, from, count);
}

static INLINE void load_words(u32 *to, const u8 *from, u32 count) { swap_words((u8 *)to, from, count); }
static INLINE void store_words(u8 *to, const u32 *from, u32 count) { swap_words(to, (const u8 *)from, count); }
