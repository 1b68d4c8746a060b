/* The ranks of collectives: they send chunks over connections, add what arrives to their values, and acknowledge it.
 *
 * A fragment waits until all terms of its value are there. A receiver acknowledges by notices, which say how many
 * fragments have arrived in a row; their bitmap marks the arrived ones of 64 fragments from `seq` on. Consecutive
 * fragments are acknowledged together, a gap at once.
 */

#define BITS 64

/* ---- values ---- */

static s64 value_at(const struct endpoints *all, u64 row, u32 i) {
    return all->is_wide ? ((s64 *)all->values)[row * VALUES + i] : ((s32 *)all->values)[row * VALUES + i];
}

static void add_value(const struct endpoints *all, u64 row, u32 i, s64 more) {
    if (all->is_wide)
        ((s64 *)all->values)[row * VALUES + i] += more;
    else
        ((s32 *)all->values)[row * VALUES + i] += (s32)more;
}

/* A value has all its terms: it is a result, or a term of another value. */
static void settle(struct endpoints *all, u64 row, s64 now) {
    for (;; row = (u64)all->following[row]) {
        struct job *job = &all->jobs[all->job_of[row]];
        if (all->is_final[row]) {
            job->ended_at = now;
            if (!--job->unfinished)
                all->halted = 1;
        }
        if (all->following[row] < 0)
            return;
        for (u32 i = 0; i < VALUES; i++)
            add_value(all, (u64)all->following[row], i, value_at(all, row, i));
        if (--all->missing[all->following[row]])
            return;
    }
}

/* Count a job's results, and settle the values that consist of a rank's own gradient. */
static void ranks_begin(struct endpoints *all, u32 number) {
    struct job *job = &all->jobs[number];
    for (u64 row = job->first_value; row < job->first_value + job->values; row++)
        job->unfinished += all->is_final[row];
    for (u64 row = job->first_value; row < job->first_value + job->values; row++)
        if (all->own[row] && !all->missing[row])
            settle(all, row, 0);
}

/* ---- sending ---- */

static int is_wide(const struct endpoints *all, u64 row) {
    for (u32 i = 0; all->is_wide && i < VALUES; i++)
        if (value_at(all, row, i) != (s32)value_at(all, row, i))
            return 1;
    return 0;
}

/* Send a fragment of a value: one packet, or two if it needs more than 32 bits. */
static void send_chunk(struct endpoints *all, struct stream *stream, u32 fragment, u32 flags) {
    u64 row = all->source[stream->first_chunk + fragment];
    u8 frame[HEAD_BYTES + 4 * VALUES];
    int wide = is_wide(all, row);
    memcpy(frame, stream->head, HEAD_BYTES);
    put32(frame + AT_SEQ, stream->first_seq + fragment);
    frame[AT_FLAGS] = flags | (wide ? OVERFLOW : 0);
    for (int part = 0; part <= wide; part++) {
        frame[AT_PART] = part;
        for (u32 i = 0; i < VALUES; i++)
            put32(frame + HEAD_BYTES + 4 * i, (u32)(part ? value_at(all, row, i) >> 32 : value_at(all, row, i)));
        give(all, &all->hosts[stream->host], frame, sizeof frame);
        stream->sent += part;
    }
}

/* Send what is due from a host's connections, and set the time of its next action: the timer of its first stream. */
static void rank_act(struct endpoints *all, u32 number, s64 now) {
    struct host *host = &all->hosts[number];
    int heard = !is_silent(host, now), ready = 0;
    s64 due = NEVER, starts;
    refill(&host->earned_at, host->interval, host->ready ? host->depth : 2 * host->interval, host->ready ? &host->late : 0, now);
    for (u32 i = 0; i < host->streams; i++) {
        struct stream *stream = &all->streams[host->first_stream + i];
        if (!stream->active)
            continue;
        refill(&stream->earned_at, stream->interval, stream->ready ? stream->depth : 2 * stream->interval, 0, now);
        while (stream->known < stream->count && !all->missing[all->source[stream->first_chunk + stream->known]])
            stream->known++;
        if (now >= stream->look_at)
            look(all, stream, now);
    }
    for (struct stream *stream; heard && !host->blocked && host->earned_at + host->interval <= now && (stream = next_connection(all, host, now));) {
        u32 again = first_again(all, stream), fragment = again == NONE ? stream->next : again;
        host->earned_at += (s64)(host->interval * all->cost[stream->first_chunk + fragment]);
        if (again != NONE)
            repeat(all, stream, again, now);
        else
            send_new(all, stream, now);
    }
    for (u32 i = 0; i < host->streams; i++) {
        struct stream *stream = &all->streams[host->first_stream + i];
        stream->ready = can_send(all, stream);
        if (stream->active && stream->look_at < due)
            due = stream->look_at;
        if (!stream->ready)
            continue;
        starts = has_credit_at(stream) > host->earned_at + host->interval ? has_credit_at(stream) : host->earned_at + host->interval;
        ready |= has_credit_at(stream) <= now;
        if (heard && !host->blocked && starts < due)
            due = starts;
        if (!heard && !host->cut_off && host->silent_until < due)
            due = host->silent_until;
    }
    host->ready = ready;
    timer_set(all, host->first_stream, due <= now ? now + 1 : due);
}

static int take_acknowledgement(struct endpoints *all, struct tree *tree, u32 host, const u8 *frame, s64 now) {
    struct stream *stream = stream_of(all, host, (u32)(tree - all->trees));
    if (!stream)
        return 0;
    u32 base = get32(frame + AT_SLOT) - stream->first_seq, block = get32(frame + AT_SEQ) - stream->first_seq;
    u64 bitmap = get64(frame + AT_BITMAP);
    if (frame[AT_KIND] != NOTICE || !stream->active || base > stream->next || block > stream->count)
        return 1;
    for (u32 fragment = stream->base; fragment < base; fragment++)
        if (row_of(all, stream, fragment)->parts != WHOLE) {
            row_of(all, stream, fragment)->parts = WHOLE;
            acknowledge(all, stream, fragment, 0, now);
        }
    for (u32 bit = 0; bit < BITS; bit++) {
        u32 fragment = block + bit;
        if (!(bitmap >> bit & 1) || fragment < stream->base || fragment >= stream->next)
            continue;
        if (row_of(all, stream, fragment)->parts != WHOLE) {
            row_of(all, stream, fragment)->parts = WHOLE;
            acknowledge(all, stream, fragment, 0, now);
        }
    }
    rank_act(all, host, now);
    return 1;
}

/* ---- receiving ---- */

static u64 arrived_in(const struct endpoints *all, const struct stream *stream, u32 block) {
    u64 bitmap = 0;
    for (u32 bit = 0; bit < BITS && block * BITS + bit < stream->count; bit++)
        bitmap |= (u64)(all->came[stream->first_chunk + block * BITS + bit] == WHOLE) << bit;
    return bitmap;
}

/* Acknowledge if it is due: one bitmap for the block of the newest fragment, and for all earlier blocks with gaps. */
static void acknowledgement_act(struct endpoints *all, u32 number, s64 now) {
    struct stream *stream = &all->streams[number];
    struct host *host = &all->hosts[all->trees[stream->tree].server];
    s64 waits_until = stream->fresh ? stream->fresh_since + stream->patience : NEVER;
    if (!stream->hurried && stream->fresh < ACKNOWLEDGED_AT_ONCE && waits_until > now) {
        timer_set(all, all->stream_count + number, waits_until);
        return;
    }
    if (is_silent(host, now) || host->blocked) { /* until it can send again */
        timer_set(all, all->stream_count + number, host->silent_until > now && !host->blocked ? host->silent_until : NEVER);
        return;
    }
    u32 last = (stream->newest > stream->arrived ? stream->newest : stream->arrived) / BITS;
    for (u32 block = stream->arrived / BITS; block <= last; block++) {
        u8 frame[HEAD_BYTES];
        memcpy(frame, stream->ask, HEAD_BYTES);
        put32(frame + AT_SEQ, stream->first_seq + block * BITS);
        put32(frame + AT_SLOT, stream->first_seq + stream->arrived);
        put64(frame + AT_BITMAP, arrived_in(all, stream, block));
        give(all, host, frame, sizeof frame);
    }
    stream->fresh = stream->hurried = 0;
    timer_set(all, all->stream_count + number, NEVER);
}

/* Add an arrived chunk to the value that it is a term of. */
static void add_chunk(struct endpoints *all, u64 chunk, const u8 *frame, s64 now) {
    s64 target = all->target[chunk];
    u32 wide = frame[AT_FLAGS] & OVERFLOW, part = frame[AT_PART];
    for (u32 i = 0; target >= 0 && i < VALUES; i++) {
        s64 word = (s32)get32(frame + HEAD_BYTES + 4 * i);
        add_value(all, (u64)target, i, !wide ? word : part ? (s64)((u64)word << 32) : word & 0xFFFFFFFF);
    }
    all->came[chunk] |= wide ? 1 << part : WHOLE;
    if (target >= 0 && all->came[chunk] == WHOLE && !--all->missing[target])
        settle(all, (u64)target, now);
}

/* Take a chunk; returns 0 for a packet of no connection to this host. */
static int take_chunk(struct endpoints *all, struct tree *tree, u32 host, const u8 *frame, s64 now) {
    u32 number = get16(frame + AT_LABEL), part = frame[AT_PART];
    const struct label *label = &all->labels[tree->first_label + number];
    if (tree->server != host || number >= tree->labels || label->stream == NONE)
        return 0;
    struct stream *stream = &all->streams[label->stream];
    u32 fragment = get32(frame + AT_SEQ) - stream->first_seq;
    if (!stream->active || fragment >= stream->count || part > 1)
        return 1;
    u64 chunk = stream->first_chunk + fragment;
    u8 bits = frame[AT_FLAGS] & OVERFLOW ? 1 << part : WHOLE;
    if (all->came[chunk] & bits)
        stream->hurried = 1;
    else {
        add_chunk(all, chunk, frame, now);
        stream->fresh_since = stream->fresh++ ? stream->fresh_since : now;
        if (fragment > stream->newest)
            stream->newest = fragment;
        while (stream->arrived < stream->count && all->came[stream->first_chunk + stream->arrived] == WHOLE)
            stream->arrived++;
        stream->hurried |= stream->arrived <= stream->newest || stream->arrived == stream->count;
    }
    acknowledgement_act(all, label->stream, now);
    rank_act(all, host, now);
    return 1;
}
