/* Sending fragments: their packets, and the rows that remember when each was sent. */

#define WHOLE 3 /* both parts of a result are there: bit 0 for the low words, bit 1 for the high words */
#define MOST_TRIES 255

static int is_silent(const struct host *host, s64 now) { return host->cut_off || host->silent_until > now; }

static struct row *row_of(const struct endpoints *all, const struct stream *stream, u32 fragment) {
    return &all->rows[stream->first_row + (fragment & stream->mask)];
}

/* A 32-bit hash of a pair of numbers: the finalizer of MurmurHash3 over both. */
static u32 spread(u32 key, u32 seq) {
    u32 x = seq + key * 0x9E3779B1u;
    x = (x ^ x >> 16) * 0x85EBCA6Bu;
    x = (x ^ x >> 13) * 0xC2B2AE35u;
    return x ^ x >> 16;
}

static u32 slot_of(const struct tree *tree, u32 seq) {
    return tree->slots ? (tree->hashed ? spread(tree->key, seq) : seq) % tree->slots : 0;
}

/* Send a packet from a host, and with the host's `doubled_share` of chances once more. */
static void give(const struct endpoints *all, struct host *host, const u8 *frame, u32 length) {
    all->send(all->context, host->way, frame, length);
    if (!host->doubled_share)
        return;
    host->random = mixed(host->random + 0x9E3779B97F4A7C15u);
    if ((host->random >> 32) < host->doubled_share) {
        host->doubled++;
        all->send(all->context, host->way, frame, length);
    }
}

/* ---- round-trip times, and the timeouts that follow from them (RFC 6298) ---- */

#define MEASURED 8 /* the fragments of a window whose round trip is measured; more would make the deviation forget too soon */

/* Add a sample to a smoothed round trip, which is negative without any, and to its deviation. */
static void smooth(s64 *smoothed, s64 *deviation, s64 sample) {
    s64 apart = sample - *smoothed;
    if (*smoothed < 0) {
        *smoothed = sample, *deviation = sample / 2;
        return;
    }
    *deviation += ((apart < 0 ? -apart : apart) - *deviation) / 4;
    *smoothed += apart / 8;
}

static void measure(struct stream *stream, const struct row *row, s64 now) {
    if (row->order < stream->measured_from)
        return;
    stream->measured_from = row->order + stream->in_flight / MEASURED + 1;
    smooth(&stream->smoothed, &stream->deviation, now - row->sent_at);
}

/* The timeout of a stream's fragments. A round trip includes the wait for other workers, so it can have any length;
 * `first_timeout` bounds it. At least a quarter of it is added: in a queue that others fill evenly the deviation
 * vanishes. */
static s64 timeout_of(const struct endpoints *all, const struct stream *stream) {
    s64 least = all->min_timeout + stream->held, most = all->first_timeout + stream->held;
    s64 margin = 4 * stream->deviation > stream->smoothed / 4 ? 4 * stream->deviation : stream->smoothed / 4;
    s64 measured = stream->smoothed + margin;
    return stream->smoothed < 0 || measured > most ? most : measured < least ? least : measured;
}

/* The timeout of one fragment, doubled at each try. */
static s64 patience(const struct endpoints *all, const struct stream *stream, const struct row *row) {
    s64 timeout = timeout_of(all, stream);
    u32 doublings = row->tries ? row->tries - 1 : 0;
    if (row->tries > 1 && timeout > all->retry)
        timeout = all->retry;
    if (doublings > stream->max_backoff)
        doublings = stream->max_backoff;
    timeout <<= doublings;
    return timeout < all->max_timeout ? timeout : all->max_timeout;
}

/* ---- packets ---- */

#define NONE 0xFFFFFFFFu

/* How many fragments before one another is, as packets say: plus 2^15, or 0 if there is none. */
static u32 ago(u32 fragment, u32 other) {
    u32 biased = fragment - other + SENT_BEFORE;
    return other != NONE && biased <= 0xffff ? biased : 0;
}

/* A packet names the two that were sent before it. */
static void name_sent_before(u8 *frame, u32 fragment, u32 *last, u32 *before) {
    put16(frame + AT_BITMAP, ago(fragment, *last)), put16(frame + AT_BITMAP + 2, ago(fragment, *before));
    *before = *last, *last = fragment;
}

/* A fragment, or a question about it, has left. */
static void note_try(struct stream *stream, struct row *row, u32 bytes, s64 now) {
    row->sent_at = now, row->order = stream->order++;
    row->tries += row->tries < MOST_TRIES;
    spend(stream, bytes);
}

static void note_sent(const struct endpoints *all, struct stream *stream, struct row *row, s64 now) {
    s64 expires;
    row->begun_at = row->tries ? row->begun_at : now;
    note_try(stream, row, HEAD_BYTES + 4 * VALUES, now);
    stream->sent++, stream->last_sent_at = now;
    if (stream->first_sent_at < 0)
        stream->first_sent_at = now;
    expires = now + patience(all, stream, row);
    if (expires < stream->look_at)
        stream->look_at = expires;
}

static void send_chunk(struct endpoints *all, struct stream *stream, u32 fragment, u32 flags);

/* Send a fragment of a worker's gradient. */
static void send_gradient(struct endpoints *all, struct stream *stream, u32 fragment, u32 flags) {
    struct tree *tree = &all->trees[stream->tree];
    struct row *row = row_of(all, stream, fragment);
    u32 seq = stream->first_seq + fragment;
    s32 values[VALUES];
    u8 frame[HEAD_BYTES + 4 * VALUES];
    memcpy(frame, stream->head, HEAD_BYTES);
    frame[AT_FLAGS] = flags;
    put32(frame + AT_SEQ, seq);
    put32(frame + AT_SLOT, slot_of(tree, seq));
    if (flags & RETRANSMITTED)
        put32(frame + AT_BITMAP, 0), put32(frame + AT_BITMAP + 4, row->asker), row->asker = 0;
    if (stream->repairs && !(flags & DIRECT))
        name_sent_before(frame, fragment, &stream->last, &stream->before);
    load(stream, fragment, values);
    if (!row->tries) {
        struct expected *expected = expected_of(all, tree, fragment);
        if (expected->added < tree->crowd)
            expect(expected, tree, values);
    }
    for (u32 i = 0; i < VALUES; i++)
        put32(frame + HEAD_BYTES + 4 * i, (u32)values[i]);
    give(all, &all->hosts[stream->host], frame, sizeof frame);
}

/* Ask for a fragment's result. */
static void send_question(struct endpoints *all, struct stream *stream, u32 fragment, s64 now) {
    u32 seq = stream->first_seq + fragment;
    struct row *row = row_of(all, stream, fragment);
    u8 frame[HEAD_BYTES];
    memcpy(frame, stream->question, HEAD_BYTES);
    put32(frame + AT_SEQ, seq);
    put32(frame + AT_SLOT, slot_of(&all->trees[stream->tree], seq));
    give(all, &all->hosts[stream->host], frame, sizeof frame);
    note_try(stream, row, sizeof frame, now);
    row->asked += row->asked < MOST_TRIES, stream->questions++;
}

static void send_fragment(struct endpoints *all, struct stream *stream, u32 fragment, u32 flags, s64 now) {
    if (all->values)
        send_chunk(all, stream, fragment, flags & RETRANSMITTED);
    else
        send_gradient(all, stream, fragment, flags);
    note_sent(all, stream, row_of(all, stream, fragment), now);
}
