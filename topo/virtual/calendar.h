/* The next arrival of a link's first packet. Included by engine.c.
 *
 * Arrivals wait in a calendar. Its window has BUCKETS buckets of equal length in time, which are lists of links. A bucket
 * becomes a heap when its time has come, so that only few links are compared with each other. Links whose packets arrive
 * after the window are in the list `later` until the next window.
 */

#define BUCKETS 1024
#define PER_BUCKET 8 /* events for which the length of a bucket is chosen */
#define LONGEST 31   /* the binary logarithm of a bucket's greatest length, so that times in it have 32 bits */

struct calendar {
    u64 *open; /* the heap of the open bucket: the time since its beginning in the high 32 bits, and the link */
    u32 count;
    u32 place;         /* of the open bucket; those before it are empty */
    s64 start, begins; /* the beginnings of the window and of the open bucket */
    u32 shift;         /* the binary logarithm of a bucket's length in picoseconds */
    u32 later;         /* the first link of the list, or NONE */
    s64 soonest;       /* the first arrival after the window */
    u64 opened;        /* the events of this window so far */
    u64 filled[BUCKETS / 64];
    u32 buckets[BUCKETS]; /* the first link of each, where `filled` has its bit */
};

/* ---- the heap of the open bucket: each place has up to four children ---- */

static void sink_open(struct calendar *calendar, u32 at) {
    u64 *open = calendar->open, key = open[at];
    for (u32 child, count = calendar->count; (child = 4 * at + 1) < count; at = child) {
        u32 end = child + 4 < count ? child + 4 : count;
        for (u32 other = child + 1; other < end; other++)
            child = open[other] < open[child] ? other : child;
        if (key < open[child])
            break;
        open[at] = open[child];
    }
    open[at] = key;
}

static void add_open(struct calendar *calendar, u64 key) {
    u32 at = calendar->count++;
    for (u32 parent; at && key < calendar->open[parent = (at - 1) / 4]; at = parent)
        calendar->open[at] = calendar->open[parent];
    calendar->open[at] = key;
    calendar->opened++;
}

/* ---- the calendar ---- */

static u64 key_of(const struct calendar *calendar, const struct link *links, u32 link) {
    return (u64)(links[link].at - calendar->begins) << 32 | link;
}

/* Add a link, whose `at` is not before the present. */
static void add_arrival(struct calendar *calendar, struct link *links, u32 link) {
    u64 place = (u64)(links[link].at - calendar->start) >> calendar->shift;
    if (place <= calendar->place) {
        add_open(calendar, key_of(calendar, links, link));
    } else if (place < BUCKETS) {
        u64 bit = 1ull << place % 64, *filled = &calendar->filled[place / 64];
        links[link].after = *filled & bit ? calendar->buckets[place] : NONE;
        calendar->buckets[place] = link, *filled |= bit;
    } else {
        links[link].after = calendar->later, calendar->later = link;
        if (links[link].at < calendar->soonest)
            calendar->soonest = links[link].at;
    }
}

/* The place of the first bucket with links after the open one, or BUCKETS. */
static u32 next_place(const struct calendar *calendar) {
    u32 word = calendar->place / 64;
    u64 filled = calendar->filled[word] & ~1ull << calendar->place % 64;
    while (!filled && ++word < BUCKETS / 64)
        filled = calendar->filled[word];
    return filled ? 64 * word + __builtin_ctzll(filled) : BUCKETS;
}

static void open_bucket(struct calendar *calendar, struct link *links, u32 place) {
    calendar->place = place, calendar->begins = calendar->start + ((s64)place << calendar->shift);
    calendar->filled[place / 64] &= ~(1ull << place % 64);
    for (u32 link = calendar->buckets[place]; link != NONE; link = links[link].after) {
        __builtin_prefetch(links[link].first);
        calendar->open[calendar->count++] = key_of(calendar, links, link);
    }
    calendar->opened += calendar->count;
    for (u32 at = (calendar->count + 2) / 4; at--;)
        sink_open(calendar, at);
}

/* Begin a window at the first arrival after this one. Its buckets are as long as suits the events of this one. */
static void next_window(struct calendar *calendar, struct link *links) {
    u32 link = calendar->later;
    for (; calendar->opened > 2 * BUCKETS * PER_BUCKET && calendar->shift; calendar->opened /= 2)
        calendar->shift--;
    for (; calendar->opened < BUCKETS * PER_BUCKET / 2 && calendar->shift < LONGEST; calendar->opened = calendar->opened * 2 + 1)
        calendar->shift++;
    calendar->start = calendar->begins = calendar->soonest, calendar->place = 0;
    calendar->later = NONE, calendar->soonest = NEVER, calendar->opened = 0;
    for (u32 after; link != NONE; link = after) {
        after = links[link].after;
        add_arrival(calendar, links, link);
    }
}

/* Whether a packet arrives by `until`, the time of an event or of the end of a run. If so, `open[0]` is the first. */
static int has_arrival(struct calendar *calendar, struct link *links, s64 until) {
    while (!calendar->count) {
        u32 place = next_place(calendar);
        s64 begins = place < BUCKETS ? calendar->start + ((s64)place << calendar->shift) : calendar->soonest;
        if (begins > until || begins == NEVER)
            return 0;
        if (place < BUCKETS)
            open_bucket(calendar, links, place);
        else
            next_window(calendar, links);
    }
    return calendar->begins + (s64)(calendar->open[0] >> 32) <= until;
}

/* Bring what the next arrival needs into the processor's cache: its packet, and the rest of its link's record. */
static void fetch_arrival(const struct link *link) {
    for (u32 i = 1; i < sizeof *link / 64; i++)
        __builtin_prefetch((const u8 *)link + 64 * i);
    for (u32 i = 0; i < 6; i++)
        __builtin_prefetch((const u8 *)link->first + 64 * i);
}

/* Take the link of the first arrival out. */
static u32 take_arrival(struct calendar *calendar, const struct link *links) {
    u32 link = (u32)calendar->open[0];
    calendar->open[0] = calendar->open[--calendar->count];
    if (calendar->count) {
        sink_open(calendar, 0);
        fetch_arrival(&links[(u32)calendar->open[0]]);
    }
    return link;
}

/* The time of the first arrival, or NEVER. */
static s64 first_arrival(const struct calendar *calendar, const struct link *links) {
    u32 place = next_place(calendar);
    s64 soonest = calendar->soonest;
    if (calendar->count)
        return calendar->begins + (s64)(calendar->open[0] >> 32);
    for (u32 link = place < BUCKETS ? calendar->buckets[place] : NONE; link != NONE; link = links[link].after)
        soonest = links[link].at < soonest ? links[link].at : soonest;
    return soonest;
}
