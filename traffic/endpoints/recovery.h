/* The recovery of lost fragments. A fragment is overdue if its timeout has passed, or if results of newer ones have
 * overtaken it. It is sent again as the pace allows, before new ones; it passes all slots, directly to the PS, if the PS
 * has asked for it or if it has waited too long, because an aggregator can have lost its part.
 *
 * Workers ask for a lost fragment in turn, each after one more result than the worker before it, so that the first
 * answer saves the others from asking.
 */

/* a PS wants it directly; although its result is here; it is to be sent again; only its result is to be asked for */
enum { NOTICED = 1, WANTED = 2, QUEUED = 4, ASKING = 8, LOST = 16 };

static int goes_directly(const struct endpoints *all, const struct stream *stream, const struct row *row, s64 now) {
    int may = !stream->repairs || row == row_of(all, stream, stream->base);
    return row->flags & NOTICED || (may && now - row->begun_at > all->direct_after);
}

static void send_again(struct endpoints *all, struct stream *stream, u32 fragment) {
    struct row *row = row_of(all, stream, fragment), *rows = &all->rows[stream->first_row];
    if (row->flags & QUEUED)
        return;
    row->flags |= QUEUED, row->next = NONE;
    if (stream->again_first == NONE)
        stream->again_first = fragment;
    else
        rows[stream->again_last & stream->mask].next = fragment;
    stream->again_last = fragment;
}

/* The first fragment that is to be sent again, or NONE; those that have got their result meanwhile are left out. */
static u32 first_again(struct endpoints *all, struct stream *stream) {
    for (u32 fragment; (fragment = stream->again_first) != NONE;) {
        struct row *row = row_of(all, stream, fragment);
        if (row->parts != WHOLE || row->flags & WANTED)
            return fragment;
        row->flags &= ~QUEUED, stream->again_first = row->next;
    }
    return NONE;
}

static void repeat(struct endpoints *all, struct stream *stream, u32 fragment, s64 now) {
    struct row *row = row_of(all, stream, fragment);
    int asks = row->flags & ASKING;
    stream->again_first = row->next;
    row->flags &= asks ? ~(QUEUED | ASKING) : ~(QUEUED | WANTED);
    if (asks) {
        send_question(all, stream, fragment, now);
        return;
    }
    send_fragment(all, stream, fragment, RETRANSMITTED | (goes_directly(all, stream, row, now) ? DIRECT : 0), now);
    stream->retransmitted++;
}

/* The number of results, beyond its rule's, that a worker lets overtake a fragment before it asks. */
static s64 turn(const struct stream *stream, u32 fragment) {
    return spread(stream->label, stream->first_seq + fragment) % stream->turns;
}

/* Find overdue fragments, at most a window of them at once: the PS that all workers ask must have time to answer. */
static void look(struct endpoints *all, struct stream *stream, s64 now) {
    u32 end = stream->next, congested = 0;
    if (end - stream->base > window(stream))
        end = stream->base + window(stream);
    stream->look_at = NEVER;
    for (u32 fragment = stream->base; fragment < stream->next; fragment++) {
        struct row *row = row_of(all, stream, fragment);
        if (row->parts == WHOLE || row->flags & QUEUED)
            continue;
        s64 expires = row->sent_at + patience(all, stream, row) + 1, passed = stream->newest_order - row->order;
        int late = now >= expires, overtaken = passed >= stream->gap && passed >= stream->gap + turn(stream, fragment);
        if (!late && expires < stream->look_at)
            stream->look_at = expires;
        if (!late && !overtaken)
            continue;
        int costly = late && (!stream->keeps || goes_directly(all, stream, row, now));
        congested |= !(row->flags & NOTICED) && (costly || (overtaken && stream->yields));
        if (fragment < end)
            send_again(all, stream, fragment);
        else if (late)
            stream->look_at = now + timeout_of(all, stream) < stream->look_at ? now + timeout_of(all, stream) : stream->look_at;
    }
    if (congested)
        shrink(stream, now, timeout_of(all, stream));
}

/* A PS sums a fragment itself: it is sent again at once, past all slots. One whose result is here already is sent again
 * only if the PS has `asked` for it. */
static void take_notice(struct endpoints *all, struct stream *stream, u32 fragment, int asked) {
    struct row *row = row_of(all, stream, fragment);
    int done = row->parts == WHOLE;
    if (!asked && done)
        return;
    if (done)
        row->flags |= WANTED;
    if (done || !(row->flags & NOTICED))
        send_again(all, stream, fragment);
    row->flags |= NOTICED;
}
