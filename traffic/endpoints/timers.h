/* The times at which streams want to act: a heap, earliest first, of equal times the one with the lowest number.
 * Streams of collectives have a second timer, by which their receivers acknowledge.
 */

#define NEVER INT64_MAX

static int sooner(struct timer one, struct timer other) {
    return one.at < other.at || (one.at == other.at && one.stream < other.stream);
}

static void put_timer(struct endpoints *all, u32 at, struct timer timer) {
    all->timers[at] = timer, all->place[timer.stream] = at;
}

/* Let a stream act at `at` next instead of at the time that it wanted before. */
static void timer_set(struct endpoints *all, u32 stream, s64 time) {
    u32 at = all->place[stream], child;
    struct timer timer = {time, stream};
    if (all->timers[at].at == time)
        return;
    for (; at && sooner(timer, all->timers[(at - 1) / 2]); at = (at - 1) / 2)
        put_timer(all, at, all->timers[(at - 1) / 2]);
    for (; (child = 2 * at + 1) < all->timer_count; at = child) {
        child += child + 1 < all->timer_count && sooner(all->timers[child + 1], all->timers[child]);
        if (!sooner(all->timers[child], timer))
            break;
        put_timer(all, at, all->timers[child]);
    }
    put_timer(all, at, timer);
    all->due = all->timers[0].at;
}

static u32 timers_first(const struct endpoints *all) { return all->timers[0].stream; }
