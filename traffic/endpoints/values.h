/* The values of fragments, and their exact sums, with which every result is compared when it arrives.
 *
 * A gradient is held in memory, or its values are random numbers that a key and the fragment's number decide, so that
 * a fragment can be made again at any time and none is kept.
 */

static u16 get16(const u8 *at) { return (u16)(at[0] << 8 | at[1]); }

static u32 get32(const u8 *at) {
    u32 number;
    memcpy(&number, at, 4);
    return __builtin_bswap32(number);
}

static u64 get64(const u8 *at) {
    u64 number;
    memcpy(&number, at, 8);
    return __builtin_bswap64(number);
}

static void put16(u8 *at, u32 number) { at[0] = (u8)(number >> 8), at[1] = (u8)number; }

static void put32(u8 *at, u32 number) {
    number = __builtin_bswap32(number);
    memcpy(at, &number, 4);
}

static void put64(u8 *at, u64 number) {
    number = __builtin_bswap64(number);
    memcpy(at, &number, 8);
}

/* A number in which each bit depends on every bit of `x`: the finalizer of SplitMix64. */
static u64 mixed(u64 x) {
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 27) * 0x94D049BB133111EBu;
    return x ^ x >> 31;
}

#define LANES 8

/* The random values of one fragment: lanes of xorshift (Marsaglia 2003), uniform in [-magnitude, magnitude). */
static void random_values(u64 key, u64 fragment, u32 magnitude, s32 *values) {
    u32 lanes[LANES], drawn[VALUES + LANES], mask = 2 * magnitude - 1;
    u64 seed = mixed(key + fragment * 0x9E3779B97F4A7C15u);
    for (u32 i = 0; i < LANES; i += 2) {
        u64 two = mixed(seed + i);
        lanes[i] = (u32)two | 1, lanes[i + 1] = (u32)(two >> 32) | 1;
    }
    for (u32 at = 0; at < VALUES; at += LANES)
        for (u32 i = 0; i < LANES; i++) {
            u32 x = lanes[i];
            x ^= x << 13, x ^= x >> 17, x ^= x << 5;
            lanes[i] = drawn[at + i] = x;
        }
    if (magnitude & (magnitude - 1))
        for (u32 i = 0; i < VALUES; i++)
            values[i] = (s32)((u32)((u64)drawn[i] * (2 * (u64)magnitude) >> 32) - magnitude);
    else
        for (u32 i = 0; i < VALUES; i++)
            values[i] = (s32)((drawn[i] & mask) - magnitude);
}

u64 gradient_key(u64 seed, u64 job, u64 worker, u64 iteration) {
    return mixed(mixed(mixed(mixed(seed) + job) + worker) + iteration);
}

/* `count` fragments of a random gradient, from fragment `first` on. */
void gradient_values(u64 key, u64 first, u64 count, u32 magnitude, s32 *values) {
    for (u64 i = 0; i < count; i++)
        random_values(key, first + i, magnitude, values + i * VALUES);
}

/* The values of a fragment of a stream; behind its gradient's end they are 0. */
static void load(const struct stream *stream, u32 fragment, s32 *values) {
    u64 number = stream->start + fragment;
    s64 left = stream->gradient_values - (s64)(number * VALUES);
    u64 whole = left < VALUES ? (u64)left : VALUES;
    if (stream->gradient)
        memcpy(values, (const s32 *)stream->gradient + number * VALUES, whole * sizeof *values);
    else
        random_values(stream->key, number, stream->magnitude, values);
    memset(values + whole, 0, (VALUES - whole) * sizeof *values);
}

/* ---- exact sums ---- */

static struct expected *expected_of(const struct endpoints *all, const struct tree *tree, u32 fragment) {
    struct expected *found = &all->expected[tree->first_row + (fragment & tree->mask)];
    if (found->fragment != fragment) {
        memset(found, 0, sizeof *found);
        found->fragment = fragment;
    }
    return found;
}

static void complete(struct expected *expected) {
    expected->narrow = 1;
    for (u32 i = 0; i < VALUES; i++) {
        expected->narrow &= expected->sums[i] == (s32)expected->sums[i];
        expected->words[i] = __builtin_bswap32((u32)expected->sums[i]);
    }
}

static void expect(struct expected *expected, const struct tree *tree, const s32 *values) {
    for (u32 i = 0; i < VALUES; i++)
        expected->sums[i] += values[i];
    if (++expected->added == tree->crowd)
        complete(expected);
}

/* Add what workers have not sent yet: a result has come before all of them sent, so that it must be wrong. */
static void expect_all(const struct endpoints *all, const struct tree *tree, struct expected *expected) {
    s32 values[VALUES];
    if (expected->added == tree->crowd)
        return;
    memset(expected->sums, 0, sizeof expected->sums);
    for (u32 i = 0; i < tree->crowd; i++) {
        load(&all->streams[all->workers[tree->first_worker + i]], (u32)expected->fragment, values);
        for (u32 k = 0; k < VALUES; k++)
            expected->sums[k] += values[k];
    }
    expected->added = tree->crowd;
    complete(expected);
}

static void note_wrong(const struct endpoints *all, struct stream *stream, struct expected *expected, u32 value, s64 got) {
    struct job *job = &all->jobs[stream->job];
    u64 bit = 1ull << value % 64, *word = &expected->wrong[value / 64];
    if (!job->wrong_elements)
        job->wrong_stream = (u32)(stream - all->streams), job->wrong_fragment = (u32)expected->fragment,
        job->wrong_value = value, job->wrong_expected = expected->sums[value], job->wrong_got = got;
    if (!expected->is_wrong)
        expected->is_wrong = 1, job->wrong_fragments++;
    job->wrong_elements += !(*word & bit);
    *word |= bit;
    stream->wrong++;
}

/* Compare a result with the exact sums. A wide one comes in two parts: 0 has the low words, 1 the high ones. */
static void check(const struct endpoints *all, struct stream *stream, u32 fragment, const u8 *values, u32 wide, u32 part) {
    const struct tree *tree = &all->trees[stream->tree];
    struct expected *expected = expected_of(all, tree, fragment);
    expect_all(all, tree, expected);
    if (!wide && expected->narrow && !memcmp(values, expected->words, sizeof expected->words))
        return;
    for (u32 i = 0; i < VALUES; i++) {
        s64 sum = expected->sums[i], word = (s32)get32(values + 4 * i), got = word;
        if (wide)
            got = part ? (s64)((u64)word << 32) | (sum & 0xFFFFFFFF) : (sum & ~0xFFFFFFFFll) | (word & 0xFFFFFFFF);
        if (got != sum)
            note_wrong(all, stream, expected, i, got);
    }
}

/* Keep a result for its worker. */
static void keep(const struct stream *stream, u32 fragment, const u8 *values, u32 wide, u32 part) {
    u64 first = (stream->start + (u64)fragment) * VALUES;
    for (u32 i = 0; i < VALUES && (s64)(first + i) < stream->gradient_values; i++) {
        s64 *kept = (s64 *)stream->results + first + i, word = (s32)get32(values + 4 * i);
        if (!wide)
            *kept = word;
        else if (part)
            *kept = (s64)((u64)word << 32) | (*kept & 0xFFFFFFFF);
        else
            *kept = (*kept & ~0xFFFFFFFFll) | (word & 0xFFFFFFFF);
    }
}
