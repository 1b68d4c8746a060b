/* Recovery hop by hop, where aggregators ask for what they lack and keep results (slot policy hop-by-hop).
 *
 * Each aggregator, and the PS, asks a worker for a fragment that was lost on the way up, and the worker sends it again.
 * So a worker asks only for results: for one that newer results have overtaken and that is overdue by
 * `gap` intervals, again after `gap_again`, and without any results for the oldest one and for twice as many each time,
 * as at the end of a gradient. Who has the result answers, alone; who lacks the fragment asks for it in turn.
 *
 * Repairs need a part of links that the plan has filled. The shortest of recent round trips shows what waits in queues,
 * as each trip can also wait for other workers; a worker that has repeated fragments slows down by it.
 */

#define OVERTAKEN_BY 3 /* the newer results that show that one is missing */
#define TRIPS 32       /* the round trips of which the shortest counts */
#define SLACK 0.06     /* the part of a window that may wait in queues */
#define GAIN 2.0       /* how much slower, by the part of a window that waits beyond this */
#define MOST_OVER 0.125
#define NOBODY 0x10000u /* in place of who asked: an aggregator that has the fragment, for its sum has not left yet */

static void slow_down(struct stream *stream, s64 trip) {
    double window = (double)stream->interval * stream->in_flight, over;
    if (!stream->shortest || trip < stream->shortest)
        stream->shortest = trip;
    if (!stream->trips || trip < stream->recent)
        stream->recent = trip;
    if (!stream->interval || ++stream->trips < TRIPS)
        return;
    stream->trips = 0;
    over = (double)(stream->recent - stream->shortest) / window - SLACK;
    stream->slower = stream->retransmitted && over > 0 ? 1 + GAIN * (over < MOST_OVER ? over : MOST_OVER) : 1;
}

/* The time after which a question is asked again. */
static s64 silence(const struct endpoints *all, const struct stream *stream) {
    s64 asked = 2 * stream->shortest + stream->gap_again * stream->interval;
    return stream->held + (stream->shortest ? asked : all->first_timeout);
}

static s64 asks_at(const struct endpoints *all, const struct stream *stream, const struct row *row) {
    u32 doublings = row->tries > 5 ? row->tries - 5 : 0;
    if (row->tries <= 1)
        return row->sent_at + stream->shortest + stream->gap * stream->interval + stream->held;
    return row->sent_at + (silence(all, stream) << (doublings < MOST_DOUBLINGS ? doublings : MOST_DOUBLINGS));
}

/* Queue questions for the results that are overdue, and set the time of the next look. */
static void look_for_results(struct endpoints *all, struct stream *stream, s64 now) {
    s64 oldest, quiet_at;
    stream->look_at = NEVER;
    if (stream->base == stream->next)
        return;
    oldest = row_of(all, stream, stream->base)->sent_at;
    quiet_at = (oldest > stream->last_result_at ? oldest : stream->last_result_at) + silence(all, stream);
    if (now >= quiet_at)
        stream->silent = !stream->silent ? 1 : stream->silent < window(stream) ? 2 * stream->silent : stream->silent;
    stream->look_at = now >= quiet_at ? now + silence(all, stream) : quiet_at;
    for (u32 fragment = stream->base; fragment < stream->next; fragment++) {
        struct row *row = row_of(all, stream, fragment);
        if (row->parts == WHOLE || row->flags & QUEUED)
            continue;
        int quiet = now >= quiet_at && fragment - stream->base < stream->silent;
        int missing = row->tries > 1 || stream->newest_order - row->order >= OVERTAKEN_BY;
        s64 at = missing ? asks_at(all, stream, row) : NEVER;
        if (now < at && !quiet) {
            stream->look_at = at < stream->look_at ? at : stream->look_at;
            continue;
        }
        if (!goes_directly(all, row, now))
            row->flags |= ASKING;
        send_again(all, stream, fragment);
    }
}

/* An aggregator or a PS lacks a fragment of this worker, or of a sum below which it is: it is sent again, along its tree,
 * with the label of who asked. */
static void take_question(struct endpoints *all, struct stream *stream, u32 fragment, u32 asker) {
    struct row *row = row_of(all, stream, fragment);
    if (fragment >= stream->next || fragment < stream->base || row->parts == WHOLE)
        return;
    row->flags &= ~ASKING, row->asker = asker;
    send_again(all, stream, fragment);
}

static void look_at_all(struct endpoints *all, struct stream *stream, s64 now) {
    if (stream->repairs)
        look_for_results(all, stream, now);
    else
        look(all, stream, now);
}
