/* The pace of streams: a token bucket keeps each at its planned rate, and measures its lateness.
 *
 * `earned_at` is the time at which the bucket was empty: since then it earned a fragment each `interval`, and never
 * more than `depth` holds. A stream without an interval sends as its window allows.
 */

static void begin_pace(struct stream *stream, s64 now) {
    stream->earned_at = now - stream->interval; /* credit for the first fragment */
    stream->ready = 0;
}

/* Lose what a bucket cannot hold; `late`, if it is not 0, is raised by the time that was lost. */
static void refill(s64 *earned_at, s64 interval, s64 depth, s64 *late, s64 now) {
    s64 over = now - *earned_at - depth;
    if (over <= 0 || !interval)
        return;
    if (late)
        *late += over;
    *earned_at += over;
}

/* The time from which a stream has credit for a fragment. */
static s64 has_credit_at(const struct stream *stream) { return stream->earned_at + stream->interval; }

/* A packet takes its part of the time of a fragment. */
static void spend(struct stream *stream, u32 bytes) {
    stream->earned_at += (s64)(stream->interval * stream->slower * bytes / (HEAD_BYTES + 4 * VALUES));
}
