/* The activity of every link over time: `struct sample` has the totals of one interval, `struct series` all samples.
 *
 * Python allocates and reads both; `Series` of engine.py has their layout. Each link has a fixed number of samples:
 * when time exceeds the last one, neighbours are merged in pairs, and the interval doubles.
 */

struct sample {
    s64 sending, waiting; /* the total time of sending, and the summed waiting time of packets in its queue */
    u32 most, before;     /* the longest queue after an arrival, and the queue at the beginning of the interval */
};

struct series {
    s64 interval;
    u32 links, points; /* `points` is even */
    struct sample *samples;
};

static void merge_two(const struct sample *from, struct sample *to) {
    struct sample merged = from[0];
    merged.sending += from[1].sending, merged.waiting += from[1].waiting;
    if (merged.most < from[1].most)
        merged.most = from[1].most;
    *to = merged;
}

static void halve(struct series *series) {
    u32 half = series->points / 2;
    for (u32 link = 0; link < series->links; link++) {
        struct sample *samples = series->samples + (u64)link * series->points;
        for (u32 i = 0; i < half; i++)
            merge_two(samples + 2 * i, samples + i);
        memset(samples + half, 0, half * sizeof *samples);
    }
    series->interval *= 2;
}

/* A packet of `link` waits from `given` to `starts`, and is sent from then to `left`. `waiting`: the present queue. */
static void note_sending(struct series *series, u32 link, s64 given, s64 starts, s64 left, u32 waiting) {
    while (left / series->interval >= series->points)
        halve(series);
    s64 place = given / series->interval, ends;
    struct sample *sample = series->samples + (u64)link * series->points + place;
    if (sample->most < waiting)
        sample->most = waiting;
    for (s64 at = given; at < left; at = ends, sample++) {
        ends = ++place * series->interval;
        if (ends > left)
            ends = left;
        s64 sends = ends > starts ? ends - (at > starts ? at : starts) : 0;
        sample->sending += sends, sample->waiting += ends - at - sends;
        sample->before += at > given && at < starts;
    }
}
