/* The windows of streams: additive increase, multiplicative decrease, as in the papers.
 *
 * P4INC-AOI (section VI-B) describes one window per worker. It grows by a fragment per result up to a threshold, and by
 * a fragment per window beyond it; a notice with ECN halves the window and its threshold. ATP, on which this is
 * modelled, also halves when three results of newer fragments indicate a loss. If a plan has divided the links already,
 * a window that was halved grows back by a fragment per result all the way (`returns`). PANAMA's windows follow marks
 * of congestion (`heeds`), as DCTCP's do (Alizadeh et al., SIGCOMM 2010). The rules of each policy are in windows.py.
 */

#define NEWEST (1.0 / 16) /* the weight of the newest window in the smoothed share of marks, DCTCP's g */

static u32 window(const struct stream *stream) { return (u32)stream->size; }

static int has_room(const struct stream *stream) {
    return stream->next < stream->count && stream->next - stream->base < window(stream);
}

static double larger(double one, double other) { return one > other ? one : other; }

static void adapt_to_marks(struct stream *stream, u32 marked) {
    stream->seen++, stream->marked += marked;
    if ((double)stream->seen < stream->size)
        return;
    double share = (double)stream->marked / (double)stream->seen;
    stream->share += (share - stream->share) * NEWEST;
    if (share > 0)
        stream->size = stream->threshold = larger(stream->size * (1 - stream->share / 2), stream->least);
    stream->seen = stream->marked = 0;
}

/* A result has come. */
static void grow(struct stream *stream, u32 marked) {
    if (stream->size >= stream->threshold)
        stream->size += 1 / stream->size;
    else if ((stream->size += 1) > stream->threshold)
        stream->size = stream->threshold;
    if (stream->size > stream->in_flight)
        stream->size = stream->in_flight;
    if (stream->heeds)
        adapt_to_marks(stream, marked);
}

/* A sign of congestion: halve the window, at most once in a timeout. */
static void shrink(struct stream *stream, s64 now, s64 timeout) {
    if (now - stream->cut_at <= timeout)
        return;
    stream->cut_at = now, stream->cuts++;
    stream->size = larger(stream->size / 2, stream->least);
    if (!stream->returns)
        stream->threshold = stream->size;
}
