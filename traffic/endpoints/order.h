/* The order in which a rank sends over its connections: earlier steps first and, of one step, connections with the most
 * credit of their own. Of equal ones the next rank comes first, so that not all ranks begin with the same one.
 *
 * The rates of connections are for their own steps. If links cannot carry all connections at the same time, the steps of
 * a host follow one another: in a step in which it sends at half its highest rate, each fragment costs twice the credit,
 * so that none is left for a later step, which can share links with this one.
 */

static int goes_before(const struct endpoints *all, const struct stream *one, u32 step, const struct stream *other, u32 later) {
    if (step != later)
        return step < later;
    if (one->earned_at != other->earned_at)
        return one->earned_at < other->earned_at;
    return one->distance < other->distance;
}

static int can_send(struct endpoints *all, struct stream *stream) {
    return stream->active && (first_again(all, stream) != NONE ||
                              (stream->next < stream->known && stream->next - stream->base < window(stream)));
}

/* The connection by which a host sends next, of those with credit at `now`; 0 if there is none. */
static struct stream *next_connection(struct endpoints *all, const struct host *host, s64 now) {
    struct stream *found = 0;
    u32 least = 0;
    for (u32 i = 0; i < host->streams; i++) {
        struct stream *stream = &all->streams[host->first_stream + i];
        if (!can_send(all, stream) || has_credit_at(stream) > now)
            continue;
        u32 again = first_again(all, stream), step = all->step[stream->first_chunk + (again == NONE ? stream->next : again)];
        if (!found || goes_before(all, stream, step, found, least))
            found = stream, least = step;
    }
    return found;
}
