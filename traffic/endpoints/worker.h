/* Workers: they send the fragments of their gradients along trees, and take results and notices. */

static void stream_begin(struct endpoints *all, struct stream *stream, s64 now) {
    stream->base = stream->next = 0, stream->active = 1;
    stream->newest_order = stream->order - 1;
    stream->sent = stream->questions = 0, stream->first_sent_at = -1, stream->wrong = 0;
    stream->again_first = stream->last = stream->before = NONE, stream->look_at = NEVER;
    stream->known = stream->arrived = stream->newest = stream->fresh = stream->hurried = 0;
    begin_pace(stream, now);
}

static void send_new(struct endpoints *all, struct stream *stream, s64 now) {
    memset(row_of(all, stream, stream->next), 0, sizeof(struct row));
    send_fragment(all, stream, stream->next, 0, now);
    stream->next++;
}

/* Send what is due, and set the time of the next action. */
static void worker_act(struct endpoints *all, u32 number, s64 now) {
    struct stream *stream = &all->streams[number];
    const struct host *host = &all->hosts[stream->host];
    s64 due = NEVER;
    if (stream->active) {
        /* time lost counts as lateness if the stream was ready to send all the time */
        refill(&stream->earned_at, stream->interval, stream->depth, stream->ready ? &stream->late : 0, now);
        if (now >= stream->look_at)
            look_at_all(all, stream, now);
        int heard = !is_silent(host, now);
        while (heard && !host->blocked && has_credit_at(stream) <= now) {
            u32 again = first_again(all, stream);
            if (again != NONE)
                repeat(all, stream, again, now);
            else if (has_room(stream))
                send_new(all, stream, now);
            else
                break;
        }
        stream->ready = first_again(all, stream) != NONE || has_room(stream);
        due = stream->look_at;
        if (stream->ready && heard && !host->blocked && has_credit_at(stream) < due)
            due = has_credit_at(stream);
        if (stream->ready && !heard && !host->cut_off && host->silent_until < due)
            due = host->silent_until;
        if (due <= now)
            due = now + 1;
    }
    timer_set(all, number, due);
}

/* A fragment has its whole result. Round trips and windows follow the results of fragments that were sent once: for
 * others it is unknown which sending a result answers. */
static void acknowledge(struct endpoints *all, struct stream *stream, u32 fragment, u32 marked, s64 now) {
    struct row *row = row_of(all, stream, fragment);
    if (row->flags & LOST && row->asked == 1 && row->tries == 2) /* a round trip in which nobody waited for other workers */
        smooth(&stream->answered, &stream->unsteady, now - row->sent_at);
    if (row->tries == 1 && !(row->flags & NOTICED)) {
        if (row->order > stream->newest_order)
            stream->newest_order = row->order;
        measure(stream, row, now);
        if (stream->repairs)
            adapt_to_queues(stream, now - row->sent_at);
        if (!stream->repairs || stream->heeds)
            grow(stream, marked);
    }
    stream->last_result_at = now, stream->silent = 0;
    while (stream->base < stream->next && row_of(all, stream, stream->base)->parts == WHOLE)
        stream->base++;
    if (stream->base < stream->next && row_of(all, stream, stream->base)->order < stream->newest_order)
        look_at_all(all, stream, now); /* there is a gap */
    if (!all->values && stream->base == stream->count && !--all->jobs[stream->job].unfinished)
        all->halted = 1;
}

static struct stream *stream_of(struct endpoints *all, u32 host, u32 tree) {
    u32 low = all->hosts[host].first_stream, high = low + all->hosts[host].streams, end = high;
    while (low < high) {
        u32 middle = (low + high) / 2;
        if (all->streams[middle].tree < tree)
            low = middle + 1;
        else
            high = middle;
    }
    return low < end && all->streams[low].tree == tree ? &all->streams[low] : 0;
}

/* Whether a sum states a wrong number of workers. Programs that do not count workers say 0. */
static int is_miscounted(struct tree *tree, const u8 *frame, u32 fragment, u32 covered) {
    u32 said = get16(frame + AT_WORKERS);
    if (said == covered || (!said && !tree->counted))
        return 0;
    if (!tree->miscounts++)
        tree->miscounted_label = get16(frame + AT_LABEL), tree->miscounted_fragment = fragment,
        tree->miscounted_said = said, tree->miscounted_covered = covered;
    return 1;
}

/* Take a result or a notice; returns 0 for a packet of a tree that the host is not a worker of. */
static int worker_receive(struct endpoints *all, struct tree *tree, u32 host, const u8 *frame, s64 now) {
    struct stream *stream = stream_of(all, host, (u32)(tree - all->trees));
    if (!stream)
        return 0;
    u32 fragment = get32(frame + AT_SEQ) - stream->first_seq, flags = frame[AT_FLAGS], part = frame[AT_PART];
    u32 held = stream->next > stream->mask ? stream->next - stream->mask - 1 : 0;
    if (!stream->active)
        return 1;
    if (frame[AT_KIND] == NOTICE && flags & PARTIAL) {
        take_questions(all, stream, fragment, frame);
        worker_act(all, (u32)(stream - all->streams), now);
        return 1;
    }
    if (fragment < held || fragment >= stream->next)
        return 1;
    struct row *row = row_of(all, stream, fragment);
    if (frame[AT_KIND] == NOTICE && flags & ECN)
        shrink(stream, now, timeout_of(all, stream));
    else if (frame[AT_KIND] == NOTICE)
        take_notice(all, stream, fragment, flags & RETRANSMITTED);
    else if (frame[AT_KIND] == RESULT && row->parts != WHOLE && part <= 1) {
        u32 wide = flags & OVERFLOW ? 1 : 0;
        is_miscounted(tree, frame, fragment, tree->crowd);
        check(all, stream, fragment, frame + HEAD_BYTES, wide, part);
        if (stream->results)
            keep(stream, fragment, frame + HEAD_BYTES, wide, part);
        row->parts |= wide ? 1 << part : WHOLE;
        stream->last_result_at = now;
        for (u32 at = AT_BITMAP; stream->repairs && !(flags & RETRANSMITTED) && at <= AT_BITMAP + 2; at += 2)
            if (get16(frame + at))
                notice_loss(all, stream, fragment + SENT_BEFORE - get16(frame + at));
        if (row->parts == WHOLE) {
            doubt_questions(stream, row, flags & RETRANSMITTED);
            acknowledge(all, stream, fragment, flags & ECN ? 1 : 0, now);
        }
    } else
        return 1;
    worker_act(all, (u32)(stream - all->streams), now);
    return 1;
}
