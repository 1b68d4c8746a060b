/* The hops of packets through the network: `struct hop` is one link that one packet was given to.
 *
 * A number in a packet decides whether it is followed; some of its bytes are recorded. Python allocates and reads
 * the records; engine.py has their layout.
 */

struct hop {
    s64 given, starts, left, arrives; /* times: given to a link, first bit left, last bit left, arrived */
    u32 cause, link;                  /* the hop whose arrival made a node send it, or NONE; and the link's number */
    u8 noted[];
};

struct hops {
    u8 *records;
    u32 room, used, missed; /* records; `missed` had no room */
    u32 stride;             /* bytes from one record to the next */
    u32 noted_at, noted_bytes;
    u32 number_at, every; /* hops are noted if `every` divides the packet's big-endian number of 32 bits */
};

#define LOST (-1)

static struct hop *hop_at(const struct hops *hops, u32 number) {
    return (struct hop *)(hops->records + (u64)hops->stride * number);
}

static int is_followed(const struct hops *hops, const u8 *bytes, u32 length) {
    const u8 *at = bytes + hops->number_at;
    if (length < hops->noted_at + hops->noted_bytes || length < hops->number_at + 4)
        return 0;
    return ((u32)at[0] << 24 | at[1] << 16 | at[2] << 8 | at[3]) % hops->every == 0;
}

/* Note a hop of a packet; returns the number of its record, or NONE. */
static u32 note_hop(struct hops *hops, const struct hop *hop, const u8 *bytes, u32 length) {
    if (!is_followed(hops, bytes, length))
        return NONE;
    if (hops->used == hops->room)
        return hops->missed++, NONE;
    struct hop *record = hop_at(hops, hops->used);
    memcpy(record, hop, sizeof *hop);
    memcpy(record->noted, bytes + hops->noted_at, hops->noted_bytes);
    return hops->used++;
}
