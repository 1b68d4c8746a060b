/* Recovery hop by hop, where aggregators ask for what they lack and keep results.
 *
 * Every packet names the two that its sender has sent before it, so that its receiver knows at once what was lost. Each
 * aggregator, and the PS, asks a worker for a fragment that was lost on the way up, and the worker sends it again. So a
 * worker asks only for results: at once for one that a later one names, again when an answer is overdue, and for what
 * nobody has noticed after `gap` intervals, or after `gap_again` while its window, or the end of its gradient, lets it
 * send nothing that could show a loss. Who has the result answers, alone; who lacks the fragment asks for it in turn.
 *
 * The shortest of recent round trips shows what waits in queues, as each trip can also wait for other workers. Repairs
 * need a part of links that the plan has filled: a worker that has repeated fragments slows down by it. A window falls by
 * it too, so that no queue overflows where links carry less than planned; a loss is no sign of that. With marks of
 * congestion windows follow these instead.
 */

#define OVERTAKEN_BY 3 /* the newer results that show that one is late */
#define TRIPS 32       /* the round trips of which the shortest counts */
#define SLACK 0.06     /* the part of a window that may wait in queues */
#define GAIN 2.0       /* how much slower, by the part of a window that waits beyond this */
#define MOST_OVER 0.125
#define ROOM 0.67      /* the part of a window that may wait in queues for long */
#define NEAR 16        /* of a window's first 16th alone time suggests that results are lost: the others wait for it */
#define SOON 3         /* the questions before each waits for twice as long as the one before */
#define MOST_LONGER 3  /* the most doublings of that time; and of the results asked for while none come */
#define HEARD 8        /* the results after which */
#define MANY 4         /* more questions in vain than this are many */
#define MOST_DOUBT 4   /* the most doublings for them */
#define NOBODY 0x10000u /* in place of who asked: an aggregator that has the fragment, for its sum has not left yet */

/* The time that fragments have lately waited in queues, at least. */
static s64 queued(const struct stream *stream) {
    return stream->recent > stream->shortest ? stream->recent - stream->shortest : 0;
}

/* A round trip has ended. After each `TRIPS` of them the pace and the window follow from the shortest. */
static void adapt_to_queues(struct stream *stream, s64 trip) {
    double over, fits;
    if (!stream->shortest || trip < stream->shortest)
        stream->shortest = trip;
    if (!stream->trips || trip < stream->recent)
        stream->recent = trip;
    if (++stream->trips < TRIPS)
        return;
    stream->trips = 0;
    if (stream->interval) {
        over = (double)queued(stream) / ((double)stream->interval * stream->in_flight) - SLACK;
        stream->slower = stream->retransmitted && over > 0 ? 1 + GAIN * (over < MOST_OVER ? over : MOST_OVER) : 1;
    }
    if (stream->heeds)
        return;
    fits = stream->size * (double)stream->shortest / (double)stream->recent + ROOM * stream->in_flight;
    stream->size = fits > stream->in_flight ? stream->in_flight : larger(fits, stream->least);
}

/* A fragment has its result. If that has come itself after a question that only time suggested, and no answer, the
 * question was in vain (as Eifel finds needless timeouts, RFC 3522). Questions need parts of links that the plan has
 * filled, so that more results are late, and asked for: where many are in vain the next wait twice as long. */
static void doubt_questions(struct stream *stream, const struct row *row, int is_answer) {
    stream->vain += row->asked && !(row->flags & LOST) && !is_answer;
    if (++stream->heard < HEARD)
        return;
    if (stream->vain > MANY)
        stream->doubt += stream->doubt < MOST_DOUBT;
    else if (stream->doubt)
        stream->doubt--;
    stream->heard = stream->vain = 0;
}

/* How long a worker that cannot send waits for what is late. At the end of its gradient nothing else shows a loss. */
static s64 wait_again(const struct stream *stream) {
    return stream->gap_again * stream->interval << (stream->next < stream->count ? stream->doubt : 0);
}

/* The time without an answer after which a question is asked again. */
static s64 silence(const struct endpoints *all, const struct stream *stream) {
    s64 least = stream->shortest + wait_again(stream);
    s64 usual = stream->answered + 4 * stream->unsteady, longest = all->first_timeout, time = usual > least ? usual : least;
    return stream->held + (!stream->shortest || time > longest ? longest : time);
}

/* The time after which a fragment's result is asked for again. */
static s64 pause_of(const struct endpoints *all, const struct stream *stream, const struct row *row) {
    u32 doublings = row->asked <= SOON ? 0 : row->asked - SOON;
    s64 pause = (stream->shortest ? silence(all, stream) : stream->held + all->retry)
             << (doublings < MOST_LONGER ? doublings : MOST_LONGER);
    return pause < all->first_timeout ? pause : all->first_timeout;
}

/* The time at which to ask for a result. */
static s64 asks_at(const struct endpoints *all, const struct stream *stream, u32 fragment) {
    const struct row *row = row_of(all, stream, fragment);
    s64 usual = row->sent_at + stream->shortest + queued(stream) + stream->held;
    if (row->asked)
        return row->sent_at + pause_of(all, stream, row);
    if (row->flags & LOST)
        return row->sent_at;
    if ((fragment - stream->base) * NEAR >= stream->in_flight)
        return NEVER;
    if (!has_room(stream)) {
        s64 since = stream->next < stream->count && stream->last_result_at > usual ? stream->last_result_at : usual;
        return since + wait_again(stream);
    }
    int late = stream->newest_order - row->order >= OVERTAKEN_BY;
    return late ? usual + stream->gap * stream->interval : NEVER;
}

/* Queue questions for results, and set the time of the next look. */
static void look_for_results(struct endpoints *all, struct stream *stream, s64 now) {
    s64 heard_at, quiet_at;
    stream->look_at = NEVER;
    if (stream->base == stream->next)
        return;
    heard_at = row_of(all, stream, stream->base)->begun_at;
    heard_at = heard_at > stream->last_result_at ? heard_at : stream->last_result_at;
    if (now >= heard_at + (silence(all, stream) << stream->silent))
        stream->silent += stream->silent < MOST_LONGER;
    quiet_at = heard_at + (silence(all, stream) << stream->silent);
    stream->look_at = quiet_at > now ? quiet_at : now + silence(all, stream);
    for (u32 fragment = stream->base; fragment < stream->next; fragment++) {
        struct row *row = row_of(all, stream, fragment);
        if (row->parts == WHOLE || row->flags & QUEUED)
            continue;
        s64 at = asks_at(all, stream, fragment);
        if (now < at && (!stream->silent || row->asked || fragment - stream->base >= 1u << stream->silent)) {
            stream->look_at = at < stream->look_at ? at : stream->look_at;
            continue;
        }
        if (!goes_directly(all, stream, row, now))
            row->flags |= ASKING;
        at = now + pause_of(all, stream, row);
        stream->look_at = at < stream->look_at ? at : stream->look_at;
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

/* A notice asks for up to three fragments. Of one that was sent before this gradient the worker has nothing, but then the
 * last can still be a sum that waits at the aggregator. */
static void take_questions(struct endpoints *all, struct stream *stream, u32 fragment, const u8 *frame) {
    u32 asker = get16(frame + AT_WORKERS) + 1, before = get32(frame + AT_BITMAP), after = get32(frame + AT_BITMAP + 4);
    take_question(all, stream, fragment, asker);
    take_question(all, stream, fragment - before, asker);
    if (after)
        take_question(all, stream, fragment + after, NOBODY);
}

/* Results come in order: one that was sent before another, and has not come, is lost. */
static void notice_loss(struct endpoints *all, struct stream *stream, u32 fragment) {
    struct row *row = row_of(all, stream, fragment);
    if (fragment >= stream->base && fragment < stream->next && row->parts != WHOLE && !row->asked)
        row->flags |= LOST, stream->look_at = 0;
}

static void look_at_all(struct endpoints *all, struct stream *stream, s64 now) {
    if (stream->repairs)
        look_for_results(all, stream, now);
    else
        look(all, stream, now);
}
