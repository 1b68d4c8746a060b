/* Meters as in BMv2: one token bucket per rate, filled by time and emptied by packets. */
#pragma once

/* A bucket gets `mantissa` / 2^`shift` tokens per microsecond; `counted` is their number since the switch started. */
struct bucket {
    u64 mantissa, shift, burst, tokens, counted;
};

/* Packets use copy `which` modulo 2, the highest rate first; 0 means no rates. */
struct meter {
    u64 which;
    struct bucket copies[2][METER_RATES];
};

static INLINE u64 bits_of(u64 number) {
    u64 bits = 0;
#pragma unroll
    for (u32 step = 32; step; step /= 2)
        if (number >> step)
            number >>= step, bits += step;
    return bits + (number != 0);
}

/* The product of a number and a rate, rounded as in BMv2: to the 53 bits of a double, then down to an integer. */
static INLINE u64 tokens_in(u64 micros, u64 mantissa, u64 shift) {
    u128 product = multiply_words(micros, mantissa);
    u64 high = product >> 64, bits = high ? 64 + bits_of(high) : bits_of((u64)product);
    if (bits > 53) {
        u64 excess = bits - 53, kept = (u64)shift_right_wide(product, excess);
        u128 rest = product - shift_left_wide(kept, excess), half = shift_left_wide(1, excess - 1);
        kept += rest > half || (rest == half && kept & 1);
        product = shift_left_wide(kept, excess);
    }
    return (u64)shift_right_wide(product, shift);
}

static INLINE int takes(struct bucket *bucket, u64 micros, u64 size) {
    u64 total = tokens_in(micros, bucket->mantissa, bucket->shift), tokens = bucket->tokens + total - bucket->counted;
    bucket->counted = total;
    bucket->tokens = tokens < bucket->burst ? tokens : bucket->burst;
    if (bucket->tokens < size)
        return 0;
    bucket->tokens -= size;
    return 1;
}

/* The colour of a packet of `size` tokens: that of the highest rate that the packet exceeds. */
static INLINE u64 colour_of(struct meter *meter, u64 micros, u64 size) {
    struct bucket *buckets = meter->copies[meter->which % 2];
    if (!meter->which)
        return 0;
    for (u32 colour = METER_RATES; colour; colour--)
        if (!takes(&buckets[METER_RATES - colour], micros, size))
            return colour;
    return 0;
}
